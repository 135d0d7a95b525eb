/* personality: a kind of system in the low byte, and flags. */
#include "syscall/personality.h"

#include <inttypes.h>
#include <sys/personality.h>

#include "syscall/constants.h"
#include "syscall/decode.h"

enum { KIND_MASK = 0xff };

NAMES(kinds, "PER_???", { "PER_LINUX", 0 }, { "PER_BSD", 6 }, { "PER_LINUX32", 8 }, { "PER_RISCOS", 0xc },
      { "PER_OSF4", 0xf }, { "PER_HPUX", 0x10 });
NAMES(flags, "", { "UNAME26", 0x20000 }, NAME(ADDR_NO_RANDOMIZE), { "FDPIC_FUNCPTRS", 0x80000 }, NAME(MMAP_PAGE_ZERO),
      NAME(ADDR_COMPAT_LAYOUT), NAME(READ_IMPLIES_EXEC), NAME(ADDR_LIMIT_32BIT), NAME(SHORT_INODE), NAME(WHOLE_SECONDS),
      NAME(STICKY_TIMEOUTS), NAME(ADDR_LIMIT_3GB));

static void put_personality(struct decode *d, unsigned value)
{
	put_name(d, &kinds, value & KIND_MASK);
	if (!(value & ~(unsigned)KIND_MASK))
		return;
	puts_(d, "|");
	put_flags(d, &flags, value & ~(unsigned)KIND_MASK);
}

PRINT(print_personality)
{
	if ((unsigned)ARG == UINT32_MAX) /* asks, and changes nothing */
		puts_(d, "0xffffffff");
	else
		put_personality(d, (unsigned)ARG);
}

void result_personality(struct decode *d)
{
	put(d, "%#" PRIx64 " (", (uint64_t)d->call->result);
	put_personality(d, (unsigned)d->call->result);
	puts_(d, ")");
}

const struct kind k_personality[1] = { { print_personality, NULL, 0 } };
