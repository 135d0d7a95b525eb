# Completion of kymo's command line for fish. It asks kymo itself for commands, options and functions.

function __kymo_command
    set -l words (commandline -opc)
    test (count $words) -gt 1; and echo $words[2]
end

function __kymo_needs_command
    test (count (commandline -opc)) -eq 1
end

# Whether the word belongs to the command after --.
function __kymo_is_of_command
    contains -- -- (commandline -opc)[3..]
end

function __kymo_of_command
    set -l words (commandline -opc)
    set -l dashes (contains -i -- -- $words)
    set -l rest (string escape -- $words[(math $dashes + 1)..])
    complete -C (string join -- ' ' $rest (commandline -ct))
end

function __kymo_is
    not __kymo_is_of_command; and contains -- (__kymo_command) $argv
end

function __kymo_has_file
    test (count (commandline -opc)) -gt 2
end

# Functions of the file before the word.
function __kymo_functions
    kymo list --names -- (commandline -opc)[-1] (commandline -ct)'*' 2>/dev/null | head -n 500
end

function __kymo_commands
    kymo help 2>/dev/null | string match -rg '^  ([a-z]+ +[a-z].*)$' | string replace -r ' +' \t | string match -v -r '^kymo'
end

function __kymo_options
    kymo help (__kymo_command) 2>/dev/null | string match -r '^ *-.*' | string match -ra -- '(?<=^| )--?[A-Za-z][-a-z]*'
end

function __kymo_places
    set -l word (commandline -ct)
    set -l file (string replace -r ':.*' '' -- $word)
    if string match -q '*:*' -- $word
        kymo list --names -- $file (string replace -r '^[^:]*:' '' -- $word)'*' 2>/dev/null | string replace -r '^' "$file:" | head -n 500
    else if string match -q '*/*' -- $word
        __fish_complete_path $word
    else
        __fish_complete_command
        begin; ldconfig -p; or /sbin/ldconfig -p; end 2>/dev/null | string match -rg '^\t(\S+)\.so'
    end
end

complete -c kymo -f
complete -c kymo -n __kymo_needs_command -a '(__kymo_commands)'
complete -c kymo -n '__kymo_is help' -a '(__kymo_commands) probes aggregations'
complete -c kymo -n __kymo_is_of_command -a '(__kymo_of_command)'
complete -c kymo -n 'not __kymo_needs_command; and not __kymo_is_of_command; and string match -q -- "-*" (commandline -ct)' -a '(__kymo_options)'
complete -c kymo -n '__kymo_is record top' -s p -l probe -x -a '(__kymo_places)' -d 'record at this place'
complete -c kymo -n '__kymo_is record top' -s r -l return -x -a '(__kymo_places)' -d 'record at this return'
complete -c kymo -n '__kymo_is record' -s b -l branch -x -a '(__kymo_places)' -d 'branches in this code'
complete -c kymo -n '__kymo_is syscalls' -s p -x -a '(__fish_complete_pids)' -d 'this process'
complete -c kymo -n '__kymo_is syscalls' -s u -l user -x -a '(__fish_complete_users)' -d 'who runs the command'
complete -c kymo -n '__kymo_is record top syscalls' -l config -r -F -d 'options from a file'
complete -c kymo -n '__kymo_is record top syscalls gdb' -l pid -x -a '(__fish_complete_pids)' -d 'this process'
complete -c kymo -n '__kymo_is record top syscalls' -l name -x -a '(ps -eo comm= 2>/dev/null | sort -u)' -d 'all processes of this name'
complete -c kymo -n '__kymo_is record syscalls' -l backend -x -a 'inproc kernel ptrace auto hub' -d 'how to record'
complete -c kymo -n '__kymo_is record' -l branch-source -x -a 'auto pt bts lbr clones steps' -d 'what records branches'
complete -c kymo -n '__kymo_is record report syscalls' -s o -l output -r -F -d 'where to write to'
for option in count sum min max avg hist lhist top until
    complete -c kymo -n '__kymo_is record top' -l $option -x -a '(__kymo_places)' -d 'in place of records'
end
complete -c kymo -n '__kymo_is record' -s s -l syscall -x -a 'all none %file %desc %process %network %signal %ipc %memory %creds %clock'
complete -c kymo -n '__kymo_is syscalls' -s e -l set -x -a 'all none %file %desc %process %network %signal %ipc %memory %creds %clock'
complete -c kymo -n '__kymo_is report branches' -F
complete -c kymo -n '__kymo_is status detach snapshot threads' -a '(__fish_complete_pids)'
complete -c kymo -n '__kymo_is list explain; and not __kymo_has_file' -a '(__kymo_places)'
complete -c kymo -n '__kymo_is list explain; and __kymo_has_file' -a '(__kymo_functions)'
