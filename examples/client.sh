#!/bin/bash
# SPDX-License-Identifier: MIT
# client.sh SESSION PROMPT: the same with socat and jq. It sends one prompt, denies all requests, prints the answer.
# shellcheck disable=SC2016 # the dollars are those of jq
set -eu
session=${1:?usage: client.sh SESSION PROMPT} prompt=${2:?usage: client.sh SESSION PROMPT}
coproc plenum { exec socat - "UNIX-CONNECT:${PLENUM_SOCKET:-${XDG_RUNTIME_DIR:-/run}/plenum/plenum.sock}"; }

send() { jq -cn "$@" >&"${plenum[1]}"; }

send --arg s "$session" '{type: "control_request", request_id: "1",
	request: {subtype: "plenum_attach", session: $s, partial: false}}'
send --arg t "$prompt" '{type: "user", message: {role: "user", content: $t}}'
while IFS= read -r line <&"${plenum[0]}"; do
	case $(jq -r '[.type, .request.subtype // .response.subtype // .subtype] | join(" ")' <<<"$line") in
	'control_request can_use_tool')
		send --argjson ask "$line" '{type: "control_response", response: {subtype: "success",
			request_id: $ask.request_id, response: {behavior: "deny", message: "nobody is here"}}}'
		;;
	'control_response error') jq -r '.response.error' <<<"$line" >&2 && exit 1 ;;
	assistant*) jq -r '.message.content[] | select(.type == "text").text' <<<"$line" ;;
	result*) jq -e '.is_error | not' <<<"$line" >/dev/null && exit 0 || exit 1 ;;
	esac
done
