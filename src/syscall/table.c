/* How the arguments and results of each system call are shown: calls.def as a table of decoders. */
#include "syscall/table.h"

#include <asm/unistd_64.h>

#include "syscall/arch_prctl.h"
#include "syscall/decode.h"
#include "syscall/fcntl.h"
#include "syscall/file.h"
#include "syscall/ioctl.h"
#include "syscall/iovec.h"
#include "syscall/ipc.h"
#include "syscall/ipc_control.h"
#include "syscall/limits.h"
#include "syscall/memory.h"
#include "syscall/names.h"
#include "syscall/personality.h"
#include "syscall/poll.h"
#include "syscall/prctl.h"
#include "syscall/print.h"
#include "syscall/process.h"
#include "syscall/signal.h"
#include "syscall/socket.h"
#include "syscall/sockopt.h"
#include "syscall/stat.h"
#include "syscall/time.h"
#include "syscall/various.h"

#define CALL(call, classes, result, ...) [__NR_##call] = { result, { __VA_ARGS__ }, true },

static const struct syscall_row rows[KYMO_SYSCALL_MAX] = {
#include "syscall/calls.def"
};

const struct syscall_row *syscall_row(uint64_t number)
{
	return number < KYMO_SYSCALL_MAX && rows[number].is_known ? &rows[number] : NULL;
}
