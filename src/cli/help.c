#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"

static const char record[] =
	"usage: kymo record [OPTION...] -p SPEC [--] COMMAND [ARGUMENT...]\n"
	"       kymo record [OPTION...] -p SPEC --pid PID [--for SECONDS]\n"
	"\n"
	"Put probes into a command or a running process and record each time that they are passed.\n"
	"The exit status is the command's (128 + N when signal N ended it).\n"
	"\n"
	"  -p, --probe SPEC     record at SPEC; may be given again and again\n"
	"  -o, --output DIR     write to DIR instead of kymo.data; an earlier one becomes DIR.old\n"
	"      --pid PID        record this process; ends with it, by --for, or by Ctrl-C\n"
	"      --for SECONDS    stop recording after that long\n"
	"      --buffer SIZE    memory for a CPU, 64K to 4G (default 16M)\n"
	"      --overwrite      when the buffers are full keep the newest records, not the oldest\n"
	"      --backend NAME   how to probe: auto (default) or inproc\n"
	"      --no-rseq        never use restartable sequences; for measuring\n"
	"  -q, --quiet          no progress, no summary\n"
	"\n"
	"SPEC is FILE:FUNCTION[+OFFSET], FILE:GLOB or FILE:0xOFFSET (in the file), then any [NAME=]FETCH[:TYPE];\n"
	"'p:[GROUP/]EVENT FILE:FUNCTION ...' gives it a name.\n"
	"  FETCH  %di, %edi ... (a register), $arg1 ... (an argument, at a function's entry), $stack, $stack0, \\42\n"
	"  TYPE   u8 u16 u32 u64, s8 s16 s32 s64, x8 x16 x32 x64; x64 where none is given\n"
	"\n"
	"  kymo record -p 'libc:malloc size=%di:u64' -p libc:free -- python3 -c 'import json'\n"
	"  kymo record -p 'libc:read fd=%di:s32 n=%dx:u64' --pid 4242 --for 5\n";

static const char report[] =
	"usage: kymo report [OPTION...] [DIR]\n"
	"\n"
	"Show what was recorded in DIR (default kymo.data): counts, rates, distributions, losses.\n"
	"\n"
	"      --events         one line a record instead\n"
	"      --wall           with --events: local time, not seconds since the first event\n"
	"      --json           the summary's numbers as JSON\n"
	"      --all            every probe, thread and distribution, not the first few\n"
	"  -w, --width N        columns of the summary\n"
	"      --no-colour      no colours on a terminal\n"
	"\n"
	"  kymo report\n"
	"  kymo report --events my.data | grep malloc\n";

static const char list[] =
	"usage: kymo list [--json] FILE|PID [GLOB]\n"
	"\n"
	"List the functions of a file, or of all files that a process has mapped, one a line: address as linked,\n"
	"offset in the file, size, FILE:NAME. Functions without a symbol are listed by offset where no GLOB is given.\n"
	"FILE is a path, or a bare name: a program in PATH or a library ('libc'). GLOB may name a file: 'libc:mem*'.\n"
	"\n"
	"      --json           as JSON\n"
	"\n"
	"  kymo list libc 'mem*'\n"
	"  kymo list 4242 'python3:PyObject_*'\n";

static const char explain[] =
	"usage: kymo explain FILE|PID LOCATION\n"
	"\n"
	"Show how a probe would be put at LOCATION: the code there, the tactic, why it is safe, and which tactics were\n"
	"not taken and why. Nothing is changed anywhere. LOCATION is FUNCTION[+OFFSET], a GLOB, or 0xOFFSET in the\n"
	"file; with a PID it may begin with FILE: as in a SPEC. The exit status is 1 where no probe can be put.\n"
	"\n"
	"  kymo explain libc malloc\n"
	"  kymo explain 4242 libc:read+0x12\n";

static const char status[] =
	"usage: kymo status [--json] [PID]\n"
	"\n"
	"Show which processes have probes of kymo's in them, who records them, and what was lost; with PID also the\n"
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
