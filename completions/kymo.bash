# Completion of kymo's command line for bash. It asks kymo itself for commands, options and functions.

_kymo_commands()
{
	kymo help 2>/dev/null | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' | grep -vx kymo
}

# The options of command $1.
_kymo_options()
{
	kymo help "$1" 2>/dev/null | sed -n '/^ *-/p' | grep -oE -- '(^| )--?[A-Za-z][-a-z]*' | tr -d ' '
}

_kymo_pids()
{
	local each

	for each in /proc/[0-9]*; do
		[ -e "$each/exe" ] && echo "${each#/proc/}"
	done
}

# FILE:FUNCTION for what begins with $1; before the colon programs, libraries and paths.
_kymo_places()
{
	local file=${1%%:*}

	case $1 in
	*:*) kymo list --names -- "$file" "${1#*:}*" 2>/dev/null | awk -v file="$file" '{ print file ":" $0 }' | head -n 500 ;;
	*/*) compgen -f -- "$1" ;;
	*) compgen -c -- "$1"; { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | sed -n 's/^\t\([^ ]*\)\.so.*/\1/p' | grep "^$1" ;;
	esac
}

# Sets of system calls, after what $1 has with commas.
_kymo_sets()
{
	local before=

	case $1 in *,*) before=${1%,*}, ;; esac
	printf '%s\n' all none %file %desc %process %network %signal %ipc %memory %creds %clock | sed "s|^|$before|"
}

# Process ids, after those that $1 has with commas.
_kymo_pids_after()
{
	case $1 in
	*,*) _kymo_pids | sed "s|^|${1%,*},|" ;;
	*) _kymo_pids ;;
	esac
}

_kymo_words()
{
	local command=$1 previous=$2 word=$3

	case $word in
	--*=*) _kymo_words "$command" "${word%%=*}" "${word#*=}" | sed "s|^|${word%%=*}=|"; return ;;
	esac
	case $command:$previous in
	syscalls:-p | syscalls:--attach) _kymo_pids_after "$word"; return ;;
	syscalls:-b) echo execve; return ;;
	syscalls:-s | syscalls:-r | syscalls:-c) return ;;
	*:--pid) _kymo_pids_after "$word"; return ;;
	*:-u | *:--user) compgen -u -- "$word"; return ;;
	*:--config | *:--debug-file) compgen -f -- "$word"; return ;;
	report:--probe | report:--thread | report:--process) return ;;
	esac
	case $previous in
	-b | --branch | -p | --probe | -r | --return | --count | --sum | --min | --max | --avg | --hist | --lhist | --top | --until) _kymo_places "$word"; return ;;
	--name) ps -eo comm= 2>/dev/null | sort -u; return ;;
	--backend) printf '%s\n' inproc kernel ptrace auto hub; return ;;
	--branch-source) printf '%s\n' auto pt bts lbr clones steps; return ;;
	-s | --syscall | -e | --set) _kymo_sets "$word"; return ;;
	-o | --output | -P | --path) compgen -f -- "$word"; return ;;
	esac
	case $word in
	-*) _kymo_options "$command"; return ;;
	esac
	case $command in
	report | branches) compgen -d -- "$word" ;;
	status | detach | snapshot | threads) _kymo_pids ;;
	list | explain)
		if [ "$previous" = "$command" ]; then
			_kymo_pids
			_kymo_places "$word"
		else
			_kymo_places "$previous:$word" | sed 's/^[^:]*://'
		fi ;;
	help) _kymo_commands; printf '%s\n' probes aggregations ;;
	esac
}

# Whether the last of `words` belongs to the command after --; `command` has its words.
_kymo_is_of_command()
{
	local i

	for ((i = 2; i < ${#words[@]} - 1; i++)); do
		[ "${words[i]}" = -- ] || continue
		command=("${words[@]:i + 1}")
		return 0
	done
	return 1
}

# Bash takes a colon for the end of a word: words are those between blanks here, and what bash already has goes from the answers.
_kymo()
{
	local -a words command
	local line=${COMP_LINE:0:COMP_POINT} word has

	read -ra words <<<"$line"
	[ "${line: -1}" != ' ' ] || words+=('')
	word=${words[${#words[@]} - 1]}
	if [ ${#words[@]} -le 2 ]; then
		COMPREPLY=($(compgen -W "$(_kymo_commands)" -- "$word"))
		return
	fi
	if _kymo_is_of_command; then
		COMPREPLY=($([ ${#command[@]} -gt 1 ] && compgen -f -- "$word" || compgen -c -- "$word"))
		return
	fi
	COMPREPLY=($(compgen -W "$(_kymo_words "${words[1]}" "${words[${#words[@]} - 2]}" "$word" | sort -u)" -- "$word"))
	has=
	case $word$COMP_WORDBREAKS in
	*:*:*) has=${word%"${word##*:}"} ;;
	esac
	COMPREPLY=("${COMPREPLY[@]#"$has"}")
	case ${COMPREPLY[0]-} in
	*/) compopt -o nospace ;;
	esac
}

complete -o default -F _kymo kymo
