# SPDX-License-Identifier: MIT
# fish completion of plenumctl(1)

set -l verbs ls new send chat tail attach pending allow deny interrupt sleep stop clear-lost queue wait mode model fork rename status top events log metrics doctor reload upgrade shutdown demo
set -l of_session send chat tail attach pending allow deny interrupt sleep stop clear-lost queue wait mode model fork rename events log status

function __plenumctl_sessions
    plenumctl ls --names 2>/dev/null
end

function __plenumctl_profiles
    plenumctl status --profiles 2>/dev/null
end

function __plenumctl_requests
    set -l words (commandline -opc | string match -v -- '-*')
    test (count $words) -ge 3; and plenumctl pending --ids -- $words[3] 2>/dev/null
end

function __plenumctl_words # how many words stand before the cursor that are no options
    count (commandline -opc | string match -v -- '-*')
end

complete -c plenumctl -f
complete -c plenumctl -l json -d 'print for machines'
complete -c plenumctl -l socket -r -F -d 'connect to this socket'
complete -c plenumctl -l help -d 'say more'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -l version -d 'print the version'

complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a ls -d 'list the sessions'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a new -d 'make a session'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a send -d 'send one prompt'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a chat -d 'talk to a session'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a tail -d 'watch a session'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a attach -d 'JSON lines on stdin and stdout'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a pending -d 'requests that wait'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a allow -d 'allow a request'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a deny -d 'deny a request'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a interrupt -d 'interrupt the turn'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a sleep -d 'end the agent, keep the conversation'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a stop -d 'stop a session'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a clear-lost -d 'go on without lost guards'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a queue -d 'prompts that wait'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a wait -d 'until it is idle, asks or has ended'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a mode -d 'the permission mode'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a model -d 'the model'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a fork -d 'a copy of a conversation'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a rename -d 'another name'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a events -d 'events as they happen'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a metrics -d 'the counters of the daemon'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a status -d 'the daemon or a session'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a top -d 'sessions and clients'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a log -d 'what the daemon logged or the agent wrote to stderr'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a doctor -d 'find what is wrong'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a reload -d 'read the configuration again'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a upgrade -d 'the installed daemon takes over'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a shutdown -d 'end the daemon'
complete -c plenumctl -n "not __fish_seen_subcommand_from $verbs" -a demo -d 'two clients on one session'

complete -c plenumctl -n "__fish_seen_subcommand_from $of_session; and test (__plenumctl_words) -eq 2" -a '(__plenumctl_sessions)'
complete -c plenumctl -n "__fish_seen_subcommand_from allow deny; and test (__plenumctl_words) -eq 3" -a '(__plenumctl_requests)'

complete -c plenumctl -n '__fish_seen_subcommand_from ls' -s l -l long -d 'all columns'
complete -c plenumctl -n '__fish_seen_subcommand_from top' -s s -l sort -x -a 'session state queue pending clients memory idle cost' -d 'sort by'
complete -c plenumctl -n '__fish_seen_subcommand_from ls' -l names -d 'only the names'
complete -c plenumctl -n '__fish_seen_subcommand_from new send chat attach' -s p -l profile -x -a '(__plenumctl_profiles)' -d 'profile of a new session'
complete -c plenumctl -n '__fish_seen_subcommand_from new send chat attach' -s C -l cwd -x -a '(__fish_complete_directories)' -d 'its working folder'
complete -c plenumctl -n '__fish_seen_subcommand_from new' -s E -l env -x -d 'a variable of the agent'
complete -c plenumctl -n '__fish_seen_subcommand_from new chat' -s r -l resume -x -d 'go on with a conversation'
complete -c plenumctl -n '__fish_seen_subcommand_from new' -l fork -d 'on a copy of it'
complete -c plenumctl -n '__fish_seen_subcommand_from send' -l no-wait -d 'exit 75 at a question'
complete -c plenumctl -n '__fish_seen_subcommand_from send' -s t -l timeout -x -d 'interrupt after this time'
complete -c plenumctl -n '__fish_seen_subcommand_from send' -s c -l create -d 'make the session if it is not there'
complete -c plenumctl -n '__fish_seen_subcommand_from send attach' -s e -l existing -d 'do not make the session'
complete -c plenumctl -n '__fish_seen_subcommand_from chat' -s c -l create -d 'make the session if it is not there'
complete -c plenumctl -n '__fish_seen_subcommand_from chat tail' -s n -l lines -x -d 'begin with the last lines'
complete -c plenumctl -n '__fish_seen_subcommand_from attach' -s o -l observer -d 'only watch'
complete -c plenumctl -n '__fish_seen_subcommand_from attach' -l no-approve -d 'do not be asked'
complete -c plenumctl -n '__fish_seen_subcommand_from attach' -s r -l replay -x -a 'none all' -d 'what comes first'
complete -c plenumctl -n '__fish_seen_subcommand_from attach' -s t -l tag -d 'number the lines'
complete -c plenumctl -n '__fish_seen_subcommand_from attach' -l on-lag -x -a 'gap close wait' -d 'when too slow'
complete -c plenumctl -n '__fish_seen_subcommand_from attach' -l resume -x -d 'a conversation'
complete -c plenumctl -n '__fish_seen_subcommand_from attach' -s v -l verbose -d 'print the answer to the attach'
complete -c plenumctl -n '__fish_seen_subcommand_from allow' -s a -l always -d 'and remember it'
complete -c plenumctl -n '__fish_seen_subcommand_from allow deny' -l all -d 'each one that waits'
complete -c plenumctl -n '__fish_seen_subcommand_from allow' -s i -l input -x -d 'other input'
complete -c plenumctl -n '__fish_seen_subcommand_from deny' -s i -l interrupt -d 'and end the turn'
complete -c plenumctl -n '__fish_seen_subcommand_from interrupt' -s q -l cancel-queued -d 'drop waiting prompts'
complete -c plenumctl -n '__fish_seen_subcommand_from interrupt' -l all -d 'those of others too'
complete -c plenumctl -n '__fish_seen_subcommand_from clear-lost' -s a -l all -d 'all sessions, and new ones'
complete -c plenumctl -n '__fish_seen_subcommand_from queue' -s c -l cancel -x -d 'take one back'
complete -c plenumctl -n '__fish_seen_subcommand_from sleep' -s f -l force -d 'do not ask'
complete -c plenumctl -n '__fish_seen_subcommand_from stop' -s k -l kill -d 'at once'
complete -c plenumctl -n '__fish_seen_subcommand_from stop' -s f -l forget -d 'take it from the list'
complete -c plenumctl -n '__fish_seen_subcommand_from status' -l profiles -d 'only the names of the profiles'
complete -c plenumctl -n '__fish_seen_subcommand_from pending' -l ids -d 'only the ids'
complete -c plenumctl -n '__fish_seen_subcommand_from log' -l daemon -d 'the log of the daemon'
complete -c plenumctl -n '__fish_seen_subcommand_from wait' -s t -l timeout -x -d 'no longer than this'
complete -c plenumctl -n "__fish_seen_subcommand_from wait; and test (__plenumctl_words) -ge 3" -a 'idle asking ended'
complete -c plenumctl -n "__fish_seen_subcommand_from mode; and test (__plenumctl_words) -eq 3" -a 'default acceptEdits plan bypassPermissions dontAsk'
complete -c plenumctl -n '__fish_seen_subcommand_from tail' -l no-follow -d 'print these lines and exit'
complete -c plenumctl -n '__fish_seen_subcommand_from log' -s d -l decisions -d 'only who allowed or denied what'
complete -c plenumctl -n '__fish_seen_subcommand_from log' -s f -l follow -d 'go on as more comes'
complete -c plenumctl -n '__fish_seen_subcommand_from top' -s 1 -l once -d 'print it once'
