#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holds the rules for shell lines against a real bash: where the denied program ran, no rule may have let the line pass.

    bash_judge.py --verdicts PROGRAM --forbidden PROGRAM [--seed N] [--count N | --seconds S] [--lines FILE]
                  [--shell NAME]

First the list of evasions (corpus/rules/evasions): each must be denied or asked about, and most of them must really run
the program here, so that the list stays what it claims to be. Then lines made by chance: as many as given, the same ones
for the same seed, or as many as the time allows. A gate takes a number of lines and a fixed seed, so that it fails only
because of a change; a hunt takes a time and any seed. Each line runs in a bash of its own, in a scratch folder, with an empty environment, a PATH that holds the denied program and a few
harmless ones, without a network where the kernel lets us, as nobody where we are root, and with limits.

With --lines the lines of that file are judged alone, and printed. A failure prints the line: put it into the corpus.
"""

import argparse
import concurrent.futures
import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EVASIONS = Path(__file__).resolve().parent / "corpus" / "rules" / "evasions"
SEPARATOR = "\n----\n"
LEAST_RAN = 150  # of the evasions, with the packages that the tests need anyway
# What random text may reach: nothing that can do harm in an empty folder.
HARMLESS = ["awk", "bash", "cat", "echo", "env", "false", "find", "grep", "head", "ls", "mawk", "nice", "nohup", "printf",
            "sed", "sh", "sleep", "sort", "stdbuf", "tail", "tee", "timeout", "tr", "true", "wc", "xargs"]
# What the fixed list may reach besides.
MORE = ["base64", "bwrap", "busybox", "capsh", "chmod", "choom", "chrt", "cp", "dd", "dirname", "ed", "ex", "expect",
        "fakeroot", "faketime", "firejail", "flock", "gawk", "gdb", "git", "i386", "ionice", "less", "linux32", "linux64",
        "ln", "ltrace", "lua", "make", "man", "mkdir", "node", "numactl", "parallel", "perf", "perl", "php", "prlimit",
        "proot", "python3", "rm", "rsync", "ruby", "runuser", "script", "setarch", "setpriv", "setsid", "sg", "socat",
        "split", "ssh", "ssh-agent", "strace", "tar", "taskset", "toybox", "unshare", "uname", "valgrind", "vi", "vim",
        "watch", "which", "x86_64", "xvfb-run", "zip"]
# Options that keep a shell from reading files at its start.
STARTED = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"]}
NOBODY = 65534
FENCED = "PLENUM_JUDGE_FENCED"
FOLDERS = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class Sandbox:
    """Scratch folders, one for each line."""

    def __init__(self, forbidden, shell):
        self.root = Path(tempfile.mkdtemp(prefix="plenum-judge-"))
        self.root.chmod(0o755)
        self.forbidden = forbidden
        self.tools = {}
        for name, programs in (("few", HARMLESS), ("all", HARMLESS + MORE)):
            folder = self.tools[name] = self.root / name
            folder.mkdir(mode=0o755)
            for program in programs:
                real = shutil.which(program, path=FOLDERS)
                if real:
                    (folder / program).symlink_to(os.path.realpath(real) if program in ("sh", "bash") else real)
        self.shell = [shutil.which(shell, path=FOLDERS), *STARTED.get(Path(shell).name, [])]
        self.numbers = itertools.count()
        self.nobody = os.geteuid() == 0 and not mapped()
        self.prefix = [shutil.which("prlimit", path=FOLDERS), "--cpu=2", "--fsize=4194304", "--core=0"]
        if self.nobody:
            self.prefix += [shutil.which("setpriv", path=FOLDERS), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]

    def ran(self, line, tools):
        """Whether bash, given the line, ran the denied program."""
        folder = self.root / f"line{next(self.numbers)}"
        (folder / "bin").mkdir(parents=True)
        shutil.copy(self.forbidden, folder / "bin" / "forbidden")
        for each in (folder, folder / "bin", folder / "bin" / "forbidden"):
            each.chmod(0o755)
        if self.nobody:
            os.chown(folder, NOBODY, NOBODY)
        environment = {"PATH": f"{folder}/bin:{self.tools[tools]}", "HOME": str(folder), "LC_ALL": "C", "TERM": "dumb",
                       "FORBIDDEN_MARK": str(folder / "ran")}
        process = subprocess.Popen(
            [*self.prefix, *self.shell, "-c", line], cwd=folder, env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(4)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        seen = any(folder.rglob("ran"))
        shutil.rmtree(folder, ignore_errors=True)
        return seen

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)


def mapped():
    """Whether this runs in a user namespace that fence() has made: root is then the user who started it."""
    return os.environ.get(FENCED) == "user"


def fence():
    """Starts this script again where it sees no other process and no network, if the kernel lets us."""
    fences = [("root", ["--net", "--pid", "--mount-proc"])] if os.geteuid() == 0 else []
    fences += [("user", ["--user", "--map-root-user", "--net", "--pid", "--mount-proc"])] if os.geteuid() else []
    for name, options in fences:
        command = ["unshare", *options, "--fork", "--kill-child"]
        if subprocess.run([*command, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            os.execvpe(command[0], [*command, sys.executable, *sys.argv], {**os.environ, FENCED: name})


# --- lines by chance --------------------------------------------------------------------------------------------------

NAMES = ["forbidden", "f''orbidden", '"forbidden"', "forbid\\den", "bin/forbidden", "./bin/forbidden", "for\\\nbidden",
         "$'\\x66orbidden'", "f{orbidden,}", "$X", "for$Y", "bin/f*", "${X}", "$(echo forbidden)", "`echo forbidden`"]
# The name in forms that only a program or the shell puts together again: an unlisted reader of such text is the danger.
HIDDEN = ["printf 'forb\\151dden x'", "$(printf 'forb\\151dden')", "X=orbidden", "f$X", "f${X}", "Z=f", "$Z''orbidden",
          "echo forbXdden x|tr X i", "x='a[$(f\"\"orbidden x)]'", "x='a[$(forb'", "x+='idden x)]'", "$((x))", "${x@P}", "${!x}",
          "((x))", "[[ x -eq 1 ]]", "let x", "read -r x", "'$(forb\\idden)'", "bin/f*n", "b*/f*", "'f''orbidden x'", ">s",
          "sh s", "./s", ". ./s", "chmod +x s", "| sh", "|bash", "<(", "<<< ", "tee s", "eval ", "env ", "xargs ", "sed ",
          "s/X/i/e", "awk ", "-e ", "-c ", "\"$x\"", "$x", "for x in ", "; do ", "done", "ls(){ ", "}", "ls ", "echo ", ": "]
WRAPPERS = ["env ", "nice ", "nice -n 3 ", "timeout 1 ", "nohup ", "command ", "exec ", "time ", "! ", "eval ", "stdbuf -o0 ",
            "builtin command ", "env -u A B=1 ", "A=1 ", "xargs ", "xargs -n1 ", "xargs -I% ", "find bin -exec ", "sh -c ",
            "bash -c ", "if ", "{ ", "( ", "coproc ", "mywrapper ", "trap ", "mapfile -C ", ">out ", "2>&1 "]
PIECES = ["'", '"', "\\", "$", "`", "(", ")", "{", "}", "$(", "${", "$((", "((", "))", "<(", ">(", "<<E\n", "<<'E'\n",
          "<<-E\n", "<<\"E\"; ", "\nE\n", "\n\tE\n", "<<<", ";", "&&", "||", "|", "&", "\n", "\\\n", " ", " ", "\t", "#",
          " # ", "=", "case a in a) ", ";; esac", "if true; then ", "; fi", "for i in a; do ", "; done", "[[ ", " ]]",
          "f() { ", "; }", "; f", "X=forbidden", "Y=bidden", "x='a[$(forbidden)]'", "$((x))", "echo ", "cat ", "a", "-c ",
          "-e ", "sed e", "sed 's/a/b/e' ", "awk 'BEGIN{system(\"", "\")}'", "source ", ". ", ">s", " s", "sh s", "| sh",
          "| bash", "read -r l", "printf 'forb\\151dden x'", "tee s", "<s", "\r", "*", "?", "[", "]", "!", "~", "@(", "${x@P}",
          "set -- ", "$@", "$'", "\\'", "alias a=", "shopt -s expand_aliases\n", "local ", "declare ", "E", "{}", "\\;", "%"]

# Text that a builtin evaluates again: a part with the name, for arithmetic and names of variables, options, prompts.
PAYLOADS = ["'a[$(f\"\"orbidden x)]'", "'a[$(f\"\"orbidden)]'", "$(printf 'a[$(forb\\151dden)]')", "'-va[$(f\"\"orbidden)]'",
            "'-v a[$(f\"\"orbidden)]'", "'$(f\"\"orbidden x)'", "'a[`f\"\"orbidden`]'", "$(printf -- '-va[$(forb\\151dden)]')",
            "`printf 'a[$(forb\\151dden)]'`", "'a[$(forb''idden)]'", "-pa'[$(f\"\"orbidden)]'", "f''orbidden", "'1+a[$(f\\orbidden)]'",
            "$(printf '$(forb\\151dden)')", "'x=a[$(f\"\"orbidden)]'", "a'[$(f\"\"orbidden)]=1'", "'a[$(f\"\"orbidden >&2)] = 1'",
            "-v", "-p", "-C", "-eq", "1", "v", "w", "_", "a"]
# How V gets it. The rest of the line is at the %, in V the name of the variable, in P the text.
SOURCES = ["V=P; %", "V=P; V+=P; %", "for V in P; do %; done", "for V in 1 P; do %; done", "read -r V <<< P; %", "V=P %",
           "printf %s P > s; read -r V < s; %", "printf '%s\n' P | while read -r V; do %; done", "mapfile -t V <<< P; %",
           "set -- P; %", "set -- P P; %", "set -- P; V=$1; %", "export V=P; %", "declare V=P; %", "V=(P P); %", "V=(1 [2]=P); %",
           "V[0]=P; %", "select V in P; do %; break; done <<< 1", "f() { %; }; f P", "f() { local V=P; %; }; f", ": P; %",
           "echo P; %", "V=w; w=P; %", "V=_; : P; %", "bash -c '%' P P", "env V=P bash -c '%'", "export V=P; bash -c '%'",
           "[[ P =~ .* ]]; V=$BASH_REMATCH; %", "[[ P =~ .* ]]; %", ": ${V:=P}; %", "getopts x: o -xP; V=$OPTARG; %", "%",
           "printf -v V %s P; %", "declare -n V=P; %", "readonly V=P; %", "V=P; readonly V; %", "f() { V=$1; }; f P; %",
           "echo P > s; V=$(<s); %", "eval V=\\''P'\\'; %", "V=x; V=${V/x/P}; %", "V=${V:-P}; %", "case P in *) V=P;; esac; %",
           "touch -- P; V=(*); %", "mkdir P; cd a*; V=${PWD##*x}; %", "coproc { echo P; }; read -r V <&${COPROC[0]}; %",
           "while read -r V; do %; done <<< P", "read -a V <<< P; %", "IFS=_ read -r w V <<< 1_P; %", "V=$(echo P); %"]
# What may evaluate it; D has the value of V in one of many ways, P as above.
SINKS = ["echo $((D))", "((D))", "let y=D", "let D", "echo ${a[D]}", "echo ${V[D]}", "a[D]=1", "a=([D]=1)", "echo ${y:D}",
         "y=abc; echo ${y:D:1}", "y=abc; echo ${y:0:D}", "echo ${!V}", "[[ D -eq 1 ]]", "[[ 1 -lt D ]]", "[[ -v D ]]", "test -v D",
         "[ -v D ]", "test D P", "[ D P ]", "[ ! D P ]", "[ D ]", "[ D = y ]", "[ y = D ]", "[ -f D ]", "[ D -eq 1 ]", "printf D P",
         "printf D P y", "printf D", "printf -v D y", "printf -- D P", "printf %s D", "read D <<< 1", "read -r y D <<< 1",
         "unset D", "unset -v D", "declare D", "export D", "readonly D=1", "typeset -i y=D", "local D", "f() { local D; }; f",
         "sleep 0 & wait D", "sleep 0 & wait -n D P", "sleep 0 & wait -n -p D", "mapfile D P <<< 1", "mapfile -t D <<< 1",
         "mapfile -c 1 D P <<< 1", "jobs D P", "find bin D P", "find bin D P ';'", "find bin -name f* D D ';'", "echo ${V@P}",
         "echo ${1@P}", "PS4=D; set -x; :", "PS4=D; PS4+=D; set -x; :", "for ((D;0;)); do :; done", "echo {a[D]}>t", "exec {a[D]}>t",
         "echo $[D]", "eval D", "bash -c D", "bash D P", "trap D EXIT", "sh <<< D", "echo D | sh", "command D P", "env D P", "getopts x D -x",
         "hash D P", "alias D", "enable D P", "exec D P", "coproc D", "builtin D P", "sort D P", "awk D", "sed D", "xargs D P < s",
         "D P", "nice D", "timeout 1 D", "shift D", "exit D", "return D", "ulimit D", "umask D", "cd D", "type D", "echo $((1+D*2))",
         "while ((D)); do break; done", "(( y = D ? 1 : 2 ))", "y=$((D)) echo", "echo \"$((D))\"", "cat <<< $((D))", "cat <<E\n$((D))\nE\n"]
VALUES = ["V", "$V", "${V}", "\"$V\"", "$V$V", "\"$V$w\"", "$1", "\"$1$2\"", "\"$@\"", "$*", "${V[0]}", "${V[@]}", "${V[1]}", "_", "$_", "w", "$w",
          "BASH_REMATCH", "REPLY", "MAPFILE", "OPTARG", "${V:-P}", "${V#x}", "${V/x/y}", "${V,,}", "${w:-$V}", "P", "$VP", "-$V",
          "{$V,P}", "x$V", "$V\"\"P", "~", "*", "$(echo $V)", "$((V))", "${#V}", "$?", "$0", "${!V}", "${@:1}", "${V:0}", "BASH_ARGV0"]


def evaluated(rng):
    """A value on its way to a place that evaluates it."""
    def fill(text, name):
        out = ""
        for byte in text:
            out += name if byte == "V" else rng.choice(PAYLOADS) if byte == "P" else byte
        return out
    name = rng.choice(["v", "v", "v", "w", "_", "REPLY", "PS4", "BASH_ENV", "x1"])
    sink = rng.choice(SINKS)
    for _ in range(rng.randrange(2)):
        sink += rng.choice(["; ", " && ", "\n"]) + rng.choice(SINKS)
    while "D" in sink:
        sink = sink.replace("D", rng.choice(VALUES).replace("D", "d"), 1)
    # The names of variables of the shell have these letters, too.
    for _ in range(rng.choice([1, 1, 1, 2])):
        source = rng.choice(SOURCES)
        sink = source.replace("%s", "\1").replace("%", sink).replace("\1", "%s")
    for known in ("PS4", "BASH_ENV", "REPLY", "MAPFILE", "OPTARG", "EXIT", "COPROC", "PWD", "IFS"):
        sink = sink.replace(known, "".join(chr(0xE000 + ord(c)) for c in known))
    return "".join(chr(ord(c) - 0xE000) if ord(c) >= 0xE000 else c for c in fill(sink, name))


def word(rng):
    return rng.choice(NAMES) if rng.random() < 0.55 else rng.choice(PIECES)


def chain(rng):
    """Wrappers around the name, perhaps quoted for a shell within."""
    text = rng.choice(NAMES) + rng.choice(["", " x", " \\;", " {} \\;"])
    for _ in range(rng.randrange(4)):
        wrapper = rng.choice(WRAPPERS)
        if wrapper.endswith(("-c ", "eval ", "trap ", "-C ")) and rng.random() < 0.8:
            text = "'" + text.replace("'", "'\\''") + "'" + (" EXIT" if wrapper == "trap " else "")
        text = wrapper + text + {"{ ": "; }", "( ": ")", "if ": "; then :; fi"}.get(wrapper, "")
    return text


def make_line(rng, evasions):
    kind = rng.random()
    if rng.random() < 0.4:
        return evaluated(rng)
    if kind < 0.3:
        return "".join(rng.choice(HIDDEN) + rng.choice(["", " ", " ", ";", "; ", "\n", "|", "&&"])
                       for _ in range(rng.randrange(2, 8)))
    if kind < 0.5:
        return "".join(word(rng) for _ in range(rng.randrange(2, 12)))
    if kind < 0.65:
        before = "".join(rng.choice(PIECES) for _ in range(rng.randrange(5)))
        return before + rng.choice(["", ";", "\n", "|", " "]) + chain(rng)
    line = list(rng.choice(evasions))  # one of the list, changed
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(line) + 1)
        change = rng.random()
        if change < 0.5:
            line.insert(at, rng.choice(PIECES))
        elif change < 0.8 and line:
            del line[min(at, len(line) - 1)]
        else:
            other = rng.choice(evasions)
            start = rng.randrange(len(other))
            line[at:at] = other[start:start + rng.randrange(1, 12)]
    return "".join(line)


def harmless(line):
    """Slashes lead out of the scratch folder; only those of the table above are let through, and no background loops."""
    rest = line.replace("./bin/f", "").replace("bin/f", "").replace("s/a/b/e", "").replace("s/X/i/e", "")
    rest = rest.replace("./s", "").replace("b*/f*", "").replace("/dev/null", "")
    return "/" not in rest and "while" not in line and "until" not in line and "kill" not in line


# --- judging ----------------------------------------------------------------------------------------------------------

def verdicts_of(program, lines):
    data = b"".join(line.encode("utf-8", "surrogateescape") + b"\0" for line in lines)
    answers = subprocess.run([program], input=data, stdout=subprocess.PIPE, check=True).stdout.decode().split()
    assert len(answers) == len(lines), f"{len(answers)} answers to {len(lines)} lines"
    return answers


def judge(options, sandbox, lines, tools, pool):
    """(line, verdict, ran) of each."""
    return list(zip(lines, verdicts_of(options.verdicts, lines), pool.map(lambda l: sandbox.ran(l, tools), lines)))


def report(problems):
    for line, verdict in problems:
        print(f"--- {verdict}, but this ran the denied program, or is listed as an evasion:\n{line}")
    return 1 if problems else 0


def check_evasions(options, sandbox, evasions, pool):
    results = judge(options, sandbox, evasions, "all", pool)
    ran = sum(did for _, _, did in results)
    print(f"{len(results)} evasions, {ran} of them ran the denied program here, "
          f"{sum(v == 'deny' for _, v, _ in results)} denied, {sum(v == 'ask' for _, v, _ in results)} asked")
    if options.idle:
        print("\n".join(f"did not run: {line!r}" for line, _, did in results if not did))
    failed = report([(line, verdict) for line, verdict, _ in results if verdict not in ("deny", "ask")])
    if ran < LEAST_RAN and options.shell == "bash":
        print(f"only {ran} evasions ran, {LEAST_RAN} are expected")
        failed = 1
    return failed


def check_chance(options, sandbox, evasions, pool):
    rng = random.Random(options.seed)
    plain = [line for line in evasions if harmless(line)]
    end = time.monotonic() + options.seconds
    judged = passed = ran = 0
    problems = []

    def goes_on():
        return judged < options.count if options.count else time.monotonic() < end

    def run(line):
        return (options.count or time.monotonic() < end) and sandbox.ran(line, "few")

    while goes_on() and len(problems) < options.most:
        size = min(2000, options.count - judged) if options.count else 2000
        made = [line for line in (make_line(rng, plain) for _ in range(size)) if harmless(line) and "\0" not in line]
        open_lines = [line for line, verdict in zip(made, verdicts_of(options.verdicts, made))
                      if verdict not in ("deny", "ask")]
        judged += size
        passed += len(open_lines)
        for line, did in zip(open_lines, pool.map(run, open_lines)):
            ran += bool(did)
            if did:
                problems.append((line, "allow"))
    print(f"seed {options.seed}: {judged} lines by chance, {passed} let through, {ran} of these ran the denied program")
    if judged < 1000 or not passed:
        print("too few lines were judged")
        return 1
    return report(problems)


def main():
    parser = argparse.ArgumentParser(description="rules for shell lines against a real bash")
    parser.add_argument("--verdicts", required=True)
    parser.add_argument("--forbidden", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--count", type=int, default=0, help="lines by chance, instead of a time")
    parser.add_argument("--most", type=int, default=10, help="stop after so many findings")
    parser.add_argument("--idle", action="store_true", help="print the evasions that did not run the program here")
    parser.add_argument("--lines", type=Path)
    parser.add_argument("--shell", default="bash", help="bash, or another one that is installed, such as zsh")
    options = parser.parse_args()
    if FENCED not in os.environ:
        fence()
    evasions = (options.lines or EVASIONS).read_text(encoding="utf-8").rstrip("\n").split(SEPARATOR)
    sandbox = Sandbox(options.forbidden, options.shell)
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            if options.lines:
                for line, verdict, ran in judge(options, sandbox, evasions, "all", pool):
                    print(f"{verdict:5} {'ran' if ran else '-':3} {line!r}")
                return 0
            failed = check_evasions(options, sandbox, evasions, pool)
            return check_chance(options, sandbox, evasions, pool) or failed
    finally:
        sandbox.close()


if __name__ == "__main__":
    sys.exit(main())
