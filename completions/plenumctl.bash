# SPDX-License-Identifier: MIT
# bash completion of plenumctl(1)

# Lines of stdin that begin with $1, quoted. (compgen -W would expand them: a session may be named "$(reboot)".)
_plenumctl_take() {
	local line
	while IFS= read -r line; do
		[[ $line == "$1"* ]] && COMPREPLY+=("$(printf '%q' "$line")")
	done
}

_plenumctl_profiles() {
	plenumctl status --profiles 2>/dev/null
}

_plenumctl_requests() { # the ids that wait in a session
	plenumctl pending --ids -- "$1" 2>/dev/null
}

_plenumctl_takes_value() { # the option $1 of the verb $2
	case $2:$1 in
	attach:-t | deny:-i) return 1 ;;
	*:-[pCEntri]) ;;
	*:--socket | *:--profile | *:--cwd | *:--timeout | *:--resume | *:--env | *:--lines | *:--on-lag | *:--replay) ;;
	*:--input | *:--sort | top:-s) ;;
	*) return 1 ;;
	esac
}

_plenumctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local verb="" session="" word i skip=""
	local verbs="ls new send chat tail attach pending allow deny interrupt sleep stop clear-lost queue wait mode model fork rename status top events log metrics doctor reload upgrade shutdown demo"
	COMPREPLY=()

	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [[ -n $skip ]]; then
			skip=
		elif _plenumctl_takes_value "$word" "$verb"; then
			skip=1
		elif [[ $word == -* ]]; then
			:
		elif [[ -z $verb ]]; then
			verb=$word
		elif [[ -z $session ]]; then
			session=$word
		fi
	done

	case $prev in
	--cwd | -C)
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	--socket)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--profile | -p)
		_plenumctl_take "$cur" < <(_plenumctl_profiles)
		return
		;;
	--on-lag)
		mapfile -t COMPREPLY < <(compgen -W "gap close wait" -- "$cur")
		return
		;;
	esac
	if _plenumctl_takes_value "$prev" "$verb"; then
		[[ $verb != attach || $prev != -r && $prev != --replay ]] ||
			mapfile -t COMPREPLY < <(compgen -W "none all" -- "$cur")
		return
	fi

	if [[ $cur == -* ]]; then
		local options="--json --socket --help"
		case $verb in
		"") options+=" --version" ;;
		ls) options+=" --names --long" ;;
		status) options+=" --profiles" ;;
		new) options+=" --profile --cwd --env --resume --fork" ;;
		send) options+=" --no-wait --timeout --create --existing --profile --cwd" ;;
		chat) options+=" --create --profile --cwd --resume --lines" ;;
		tail) options+=" --lines --no-follow" ;;
		attach) options+=" --observer --no-approve --replay --tag --on-lag --existing --profile --cwd --resume --verbose" ;;
		allow) options+=" --always --input --all" ;;
		deny) options+=" --interrupt --all" ;;
		interrupt) options+=" --cancel-queued --all" ;;
		stop) options+=" --kill --forget" ;;
		sleep) options+=" --force" ;;
		pending) options+=" --ids" ;;
		clear-lost) options+=" --all" ;;
		queue) options+=" --cancel" ;;
		top) options+=" --once --sort" ;;
		wait) options+=" --timeout" ;;
		log) options+=" --daemon --decisions --follow" ;;
		esac
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
	elif [[ -z $verb ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$cur")
	elif [[ -z $session ]]; then
		case $verb in
		send | chat | tail | attach | pending | allow | deny | interrupt | sleep | stop | clear-lost | queue | wait | mode | model | fork | rename | events | log | status)
			_plenumctl_take "$cur" < <(plenumctl ls --names 2>/dev/null)
			;;
		esac
	elif [[ $verb == wait ]]; then
		mapfile -t COMPREPLY < <(compgen -W "idle asking ended" -- "$cur")
	elif [[ $verb == mode ]]; then
		mapfile -t COMPREPLY < <(compgen -W "default acceptEdits plan bypassPermissions dontAsk" -- "$cur")
	elif [[ $verb == allow || $verb == deny ]]; then
		_plenumctl_take "$cur" < <(_plenumctl_requests "$session")
	fi
}

complete -F _plenumctl plenumctl
