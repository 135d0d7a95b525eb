#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"

static const char record[] =
	"usage: kymo record [OPTION...] -p SPEC [--] COMMAND [ARGUMENT...]\n"
	"       kymo record [OPTION...] -p SPEC --pid PID[,PID...] | --name NAME [--for SECONDS]\n"
	"       kymo record [OPTION...] -p SPEC --all [--for SECONDS]\n"
	"\n"
	"Put probes into a command or a running process and record each time that they are passed.\n"
	"The exit status is the command's (128 + N when signal N ended it).\n"
	"\n"
	"  -p, --probe SPEC     record at SPEC; may be given many times\n"
	"  -r, --return SPEC    record at the return of SPEC's function; the same as SPEC with %return\n"
	"  -m, --marker GLOB    record markers and SDT probes: by name, or PROVIDER:NAME, or FILE:NAME\n"
	"  -s, --syscall SET    record these system calls and their results; SET as in 'kymo help syscalls';\n"
	"                       with --complete, --backend kernel or ptrace, and --all with paths, strings and structures\n"
	"      --complete       miss no system call, and have them with memory: through the kernel, else by tracing\n"
	"  -S, --string-size N  so many bytes of strings of system calls, 4096 at most (default 32)\n"
	"  -o, --output DIR     write to DIR instead of kymo.data; an earlier one becomes DIR.old\n"
	"      --pid PID[,PID]  record these processes; ends with the last, by --for, or by Ctrl-C; may be given again\n"
	"      --name NAME      record all processes of that name, or pattern; may be given again\n"
	"      --for SECONDS    stop recording after that long\n"
	"      --follow         record what it starts, too: a command's children (which is the default), or those\n"
	"                       that PID has, and makes from now on; no debugger can attach to them meanwhile\n"
	"      --no-existing    with --follow: leave out the children that PID has\n"
	"      --no-follow      record the one process alone\n"
	"      --late           files that probes name may be created, or loaded, later; else they are looked for first\n"
	"      --buffer SIZE    memory for a CPU, 64K to 4G (default 16M)\n"
	"      --overwrite      when the buffers are full keep the newest records, not the oldest\n"
	"      --all            every process that maps the files, now or later; through the kernel\n"
	"      --backend NAME   how to probe: inproc (code in the process), kernel (its uprobes: slower, for root, and no process\n"
	"                       is stopped or changed), ptrace, for system calls alone (each stops its thread twice), or auto\n"
	"                       (default: inproc, and kernel or ptrace for what is refused there)\n"
	"      --displace-faulting  displace instructions that may fault also where the process handles faults; it may die\n"
	"      --no-rseq        never use restartable sequences; for measuring\n"
	"      --no-demangle    names of functions in messages as the symbol table has them\n"
	"  -q, --quiet          no progress, no summary\n"
	"\n"
	"SPEC is FILE:FUNCTION[+OFFSET], FILE:GLOB or FILE:0xOFFSET (in the file), then any [NAME=]FETCH[:TYPE];\n"
	"'p:[GROUP/]EVENT FILE:FUNCTION ...' gives it a name. FILE:FUNCTION:* is each instruction of the function.\n"
	"Go's names are written as they are: 'app:main.(*conn).Read', 'app:main.Map[...]'; arguments are in %ax %bx %cx %di\n"
	"%si %r8 %r9 %r10 %r11 there.\n"
	"Those of C++ and Rust are as in their sources: './app:shop::Cart::add' is every overload, 'shop::Cart::add(int)' one,\n"
	"'shop::*' all of a namespace.\n"
	"A FUNCTION of which the program chooses one of several (an IFUNC: memcpy) is all of them; records say which.\n"
	"0xADDRESS in place of a file and its function is code that process --pid has made itself (a JIT's).\n"
	"  FETCH  %di, %edi ... (a register), $arg1 ... (an argument, at a function's entry), $retval (at its return),\n"
	"         $stack, $stack0, \\42\n"
	"  TYPE   u8 u16 u32 u64, s8 s16 s32 s64, x8 x16 x32 x64; x64 where none is given\n"
	"\n"
	"  kymo record -p 'libc:malloc size=%di:u64' -p libc:free -- python3 -c 'import json'\n"
	"  kymo record -p 'libc:malloc size=%di:u64' -r 'libc:malloc ptr=$retval' -- ls\n"
	"  kymo record -s %file,read -p 'libc:read fd=%di:s32' --pid 4242 --for 5\n";

static const char report[] =
	"usage: kymo report [OPTION...] [DIR]\n"
	"       kymo report --diff BEFORE [OPTION...] [DIR]\n"
	"\n"
	"Show what was recorded in DIR (default kymo.data): counts, rates, times of calls, distributions, losses.\n"
	"\n"
	"      --events         one line a record instead\n"
	"      --wall           with --events: local time, not seconds since the first event\n"
	"      --raw            with --events: system calls as two records, not as one line\n"
	"      --graph          calls as they are nested, with their durations\n"
	"      --tree           calls by the path on which they were made, with their times added up\n"
	"      --thread WHICH   events of this thread: its id, or a glob for its name; also 17,18 and more than once\n"
	"      --process WHICH  the same of a process; a glob is for its program's name\n"
	"      --probe GLOB     events and calls of these probes; may be given more than once\n"
	"      --from TIME      nothing before this, since the first event: 1.5, 1.5s, 20ms, 7us, 300ns\n"
	"      --to TIME        nothing after this; a call counts by when it begins\n"
	"      --by-thread      in the summary and with --json: counts by thread and probe, too\n"
	"      --diff BEFORE    counts and durations of the recording BEFORE beside those of DIR, what changed most first\n"
	"      --function GLOB  with --graph: of functions that match, and what happens within\n"
	"      --json           the summary's numbers as JSON; with --events an object a line\n"
	"      --all            every probe, thread and distribution, not the first few\n"
	"      --no-demangle    names of functions as the symbol table has them\n"
	"  -w, --width N        columns of the summary\n"
	"      --no-colour      no colours on a terminal\n"
	"\n"
	"  kymo report\n"
	"  kymo report --events my.data | grep malloc\n"
	"  kymo report --diff before.data after.data\n";

static const char syscalls[] =
	"usage: kymo syscalls [OPTION...] [--] COMMAND [ARGUMENT...]\n"
	"       kymo syscalls [OPTION...] --pid PID[,PID...] | --name NAME | --all\n"
	"\n"
	"Show the system calls of a command or of running processes, a line a call, as strace shows them, on stderr.\n"
	"strace's options have the same letters. The exit status is the command's (128 + N when signal N ended it).\n"
	"\n"
	"What is traced\n"
	"  -f, --follow         show threads and children that are made, too\n"
	"  -p, --pid PID[,PID]  all threads that PID has; ends with it, or by Ctrl-C; may be given again\n"
	"      --name NAME      all processes of that name; it may be a pattern\n"
	"      --all            every process but kymo, through the kernel\n"
	"      --for SECONDS    stop tracing after that long; a command runs on\n"
	"  -b execve            let go of a process that executes another program\n"
	"  -E NAME[=VALUE]      an environment variable for the command; without a value it has none\n"
	"Which calls are shown\n"
	"  -e, --set SET        only these calls; also -e trace=SET\n"
	"  -e signal=SET        only these signals\n"
	"  -e status=WHICH      only calls that are successful, failed or unfinished\n"
	"  -P, --path PATH      only calls that name PATH, or a descriptor of it; may be given again\n"
	"  -z, --successful     only calls that succeed\n"
	"  -Z, --failed         only calls that fail\n"
	"  -q                   no lines for a change between 32 and 64 bits; -qq: nor for ends; -e quiet=WHICH\n"
	"How they are shown\n"
	"  -T, --durations      how long each call took\n"
	"  -t, --times          the time of day before each line; -tt: with microseconds; -ttt: in seconds since 1970\n"
	"  -r                   the time since the line before\n"
	"  -n, -i               the number of the call; the address that it was made from\n"
	"  -y, --fd-paths       what descriptors lead to; -yy: addresses of sockets and numbers of devices, too\n"
	"  -Y                   names of processes behind their ids; -e decode-pids=comm,pidns\n"
	"  -k, --stack-traces   the stack of the thread behind each line\n"
	"  -s, --string-size N  at most N bytes of a string (default 32)\n"
	"  -v, -e abbrev=SET    structures whole; all but those of the calls in SET\n"
	"  -X raw|abbrev|verbose  constants as numbers, names, or both\n"
	"  -x, -xx              strings that are no text, or all, as hex; -e raw=SET: all arguments of these calls\n"
	"  -a COLUMN            where results begin (default 40)\n"
	"Where they go\n"
	"  -o, --output FILE    to FILE, or to a command: -o '|less'; -A: behind what FILE has\n"
	"  -ff                  with -o: to FILE.ID for each thread and process\n"
	"      --json           an object a line; with -c one list\n"
	"  -c, --count          no lines: at the end a table of calls, errors and times; -C: lines, too\n"
	"  -S COLUMN, -U LIST   how the table is sorted; which columns it has\n"
	"Changing calls\n"
	"      --inject SET:WHAT[:WHAT...]\n"
	"                       let calls fail or return without being made (error=ERRNO, retval=N), send signals\n"
	"                       (signal=SIG), delay them (delay_enter=US, delay_exit=US); when=FIRST[..LAST][+STEP];\n"
	"                       -e inject=, -e fault= take the same\n"
	"How calls are seen\n"
	"      --backend NAME   hub (a tracer, the default), or kernel (BPF at its tracepoints: nobody is stopped, so it is\n"
	"                       quicker; for root, without -y, -Y, -k, -i and -P)\n"
	"      --buffer SIZE    memory for calls that are not shown yet, with --backend kernel or --all (default 16M)\n"
	"      --seccomp-bpf    let calls that are not in SET pass without a stop, by a filter in the command; for that it and\n"
	"                       all that it starts are killed when kymo ends before them, however it ends\n"
	"\n"
	"SET is items with commas between them: names, numbers, all, none, or a class: %file %desc %process %network %signal\n"
	"%ipc %memory %creds %clock. '!SET' is all others, ',!ITEM' takes an item out again. A last '/REGEX' stands for names.\n"
	"\n"
	"  kymo syscalls ls\n"
	"  kymo syscalls -f -y -e %file,!openat -- make\n"
	"  kymo syscalls -c --pid 4242\n"
	"  sudo kymo syscalls --all -e connect\n"
	"  kymo syscalls --inject openat:error=EMFILE:when=3+ -- cat file\n";

static const char threads[] =
	"usage: kymo threads [--json] PID\n"
	"\n"
	"Show the threads of a process: id, name, state, CPU time in seconds, the system call that a thread is in (or the\n"
	"function of the kernel that it sleeps in), and its tracer; and the recordings that the process has. On a terminal\n"
	"the table is redrawn each second, with each thread's share of a CPU, until q or Ctrl-C. Nothing is stopped.\n"
	"\n"
	"      --json           as JSON, once\n"
	"\n"
	"  kymo threads 4242\n"
	"  kymo threads 4242 | grep futex\n";

static const char list[] =
	"usage: kymo list [--json | --names] FILE|PID [GLOB]\n"
	"\n"
	"List the functions of a file, or of all files that a process has mapped, one a line: address as linked,\n"
	"offset in the file, size, FILE:NAME. Functions without a symbol are listed by offset where no GLOB is given.\n"
	"FILE is a path, or a bare name: a program in PATH or a library ('libc'). GLOB may name a file: 'libc:mem*'.\n"
	"\n"
	"Then its markers, PROVIDER:NAME with format and line of source, and its SDT probes, with their arguments and\n"
	"types; the places of one marker are one line. GLOB may name the provider: 'redis:command*'.\n"
	"\n"
	"      --json           as JSON\n"
	"      --names          the names alone, as shells complete them\n"
	"      --no-demangle    names of functions as the symbol table has them\n"
	"\n"
	"  kymo list libc 'mem*'\n"
	"  kymo list 4242 'python3:PyObject_*'\n"
	"  kymo list python3 'python:*'\n";

static const char explain[] =
	"usage: kymo explain FILE|PID LOCATION\n"
	"\n"
	"Show how a probe would be put at LOCATION: the code there, the tactic, why it is safe, and which tactics were\n"
	"not taken and why. Nothing is changed anywhere. LOCATION is FUNCTION[+OFFSET], a GLOB, or 0xOFFSET in the\n"
	"file; with a PID it may begin with FILE: as in a SPEC, and a lone 0xADDRESS is code that the process has made\n"
	"itself (a JIT's). Of an IFUNC all functions are shown, and the one that PID has chosen. The exit status is 1\n"
	"where no probe can be put.\n"
	"\n"
	"  kymo explain libc malloc\n"
	"  kymo explain 4242 libc:read+0x12\n";

static const char status[] =
	"usage: kymo status [--json] [PID]\n"
	"\n"
	"Show which processes have probes of kymo's in them, their recorders, and what was lost; with PID also the\n"
	"sites.\n"
	"\n"
	"      --json           as JSON, a list in both cases\n"
	"\n"
	"  kymo status\n"
	"  kymo status 4242\n";

static const char detach[] =
	"usage: kymo detach [-q] PID\n"
	"\n"
	"Take everything of kymo's out of a process, also when its recorder was killed, and compare the text with the\n"
	"files that it comes from. A live recorder is asked to stop first.\n"
	"\n"
	"  -q, --quiet          say nothing when it worked\n"
	"\n"
	"  kymo detach 4242\n"
	"  kymo detach --quiet 4242\n";

static const struct {
	const char *command, *text;
} texts[] = {
	{ "record", record },
	{ "report", report },
	{ "syscalls", syscalls },
	{ "threads", threads },
	{ "list", list },
	{ "explain", explain },
	{ "status", status },
	{ "detach", detach },
};

const char *cli_help(const char *command)
{
	for (size_t i = 0; i < kymo_countof(texts); i++)
		if (!strcmp(texts[i].command, command))
			return texts[i].text;
	return NULL;
}
