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

_kymo_words()
{
	local command=$1 previous=$2 word=$3

	case $previous in
	-b | --branch | -p | --probe | -r | --return | --count | --sum | --min | --max | --avg | --hist | --lhist | --top | --until) _kymo_places "$word"; return ;;
	--pid) _kymo_pids; return ;;
	--name) ps -eo comm= 2>/dev/null | sort -u; return ;;
	--backend) printf '%s\n' inproc kernel ptrace auto hub; return ;;
	-s | --syscall | -e | --set) printf '%s\n' all none %file %desc %process %network %signal %ipc %memory %creds %clock; return ;;
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

# Bash takes a colon for the end of a word: words are those between blanks here, and what bash already has goes from the answers.
_kymo()
{
	local -a words
	local line=${COMP_LINE:0:COMP_POINT} word has

	read -ra words <<<"$line"
	[ "${line: -1}" != ' ' ] || words+=('')
	word=${words[${#words[@]} - 1]}
	if [ ${#words[@]} -le 2 ]; then
		COMPREPLY=($(compgen -W "$(_kymo_commands)" -- "$word"))
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
