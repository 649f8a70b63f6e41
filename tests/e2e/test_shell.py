# SPDX-License-Identifier: MIT
"""The examples of the manual: a shell, socat, nc and jq are a client."""

import subprocess

from harness import DEADLINE, Case

SAY = """printf '%s\\n' '{"type":"user","message":{"role":"user","content":"hello"}}'"""


class Shell(Case):
    def sh(self, script, timeout=DEADLINE):
        done = subprocess.run(["bash", "-euc", script], env=self.place.environment(PLENUM_SOCKET=self.daemon.socket),
                              cwd=self.work, capture_output=True, text=True, timeout=timeout)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_socat(self):
        out = self.sh(SAY + """ | socat -t 60 - "UNIX-CONNECT:$PLENUM_SOCKET" |
            jq -r 'select(.type == "result").result'""")
        self.assertEqual(out, "echo: hello\n")
        self.wait_state("default", "idle")

    def test_nc(self):
        out = self.sh(SAY + """ | nc -N -U "$PLENUM_SOCKET" | jq -r 'select(.type == "result").result'""")
        self.assertEqual(out, "echo: hello\n")

    def test_without_a_last_newline(self):
        out = self.sh("""printf '{"type":"user","message":{"role":"user","content":"hello"}}' |
            socat -t 60 - "UNIX-CONNECT:$PLENUM_SOCKET" | jq -r 'select(.type == "result").result'""")
        self.assertEqual(out, "echo: hello\n")

    def test_a_session_by_name(self):
        self.sh("""printf '%s\\n' \\
            '{"type":"user","session_id":"notes","message":{"role":"user","content":"remember quince"}}' |
            socat -t 60 - "UNIX-CONNECT:$PLENUM_SOCKET" >/dev/null""")
        out = self.sh("""printf '%s\\n' \\
            '{"type":"control_request","request_id":"1","request":{"subtype":"plenum_attach","session":"notes"}}' \\
            '{"type":"user","message":{"role":"user","content":"@history@"}}' |
            socat -t 60 - "UNIX-CONNECT:$PLENUM_SOCKET" | jq -r 'select(.type == "result").result'""")
        self.assertIn("quince", out)

    def test_a_permission_answered_by_a_script(self):
        out = self.sh(r"""
            coproc agent { socat - "UNIX-CONNECT:$PLENUM_SOCKET"; }
            prompt='{"type":"user","message":{"role":"user","content":"@tool Bash {\"command\":\"touch made\"}@"}}'
            echo "$prompt" >&"${agent[1]}"
            while read -r line <&"${agent[0]}"; do
                case $(jq -r '.request.subtype // .type' <<<"$line") in
                    can_use_tool)
                        jq -c '{type: "control_response", response: {subtype: "success", request_id: .request_id,
                            response: {behavior: "allow", updatedInput: .request.input}}}' <<<"$line" >&"${agent[1]}" ;;
                    result) echo "$line" | jq -r .result; break ;;
                esac
            done""")
        self.assertIn("tools done", out)
        self.assertTrue((self.work / "made").exists())
