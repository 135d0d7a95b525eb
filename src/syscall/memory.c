/* Mappings. */
#include "syscall/memory.h"

#include <inttypes.h>
#include <linux/mman.h>
#include <sys/mman.h>

#include "base/page.h"
#include "syscall/call.h"
#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/print.h"

NAMES(prots, "PROT_???", NAME(PROT_NONE), NAME(PROT_READ), NAME(PROT_WRITE), NAME(PROT_EXEC), { "PROT_SEM", 8 },
      NAME(PROT_GROWSDOWN), NAME(PROT_GROWSUP));
NAMES(map_types, "MAP_???", NAME(MAP_FILE), NAME(MAP_SHARED), NAME(MAP_PRIVATE), NAME(MAP_SHARED_VALIDATE),
      { "MAP_DROPPABLE", 8 });
NAMES(map_flags, "MAP_???", NAME(MAP_FIXED), NAME(MAP_ANONYMOUS), NAME(MAP_32BIT), NAME(MAP_NORESERVE),
      NAME(MAP_POPULATE), NAME(MAP_NONBLOCK), NAME(MAP_GROWSDOWN), NAME(MAP_DENYWRITE), NAME(MAP_EXECUTABLE),
      NAME(MAP_LOCKED), NAME(MAP_STACK), NAME(MAP_HUGETLB), NAME(MAP_SYNC), NAME(MAP_FIXED_NOREPLACE));
NAMES(remap_flags, "MREMAP_???", NAME(MREMAP_MAYMOVE), NAME(MREMAP_FIXED), NAME(MREMAP_DONTUNMAP));
NAMES(msync_flags, "MS_???", NAME(MS_SYNC), NAME(MS_ASYNC), NAME(MS_INVALIDATE));
NAMES(mlockall_flags, "MCL_???", NAME(MCL_CURRENT), NAME(MCL_FUTURE), NAME(MCL_ONFAULT));
NAMES(mlock2_flags, "MLOCK_???", NAME(MLOCK_ONFAULT));
NAMES(advices, "MADV_???", NAME(MADV_NORMAL), NAME(MADV_RANDOM), NAME(MADV_SEQUENTIAL), NAME(MADV_WILLNEED),
      NAME(MADV_DONTNEED), NAME(MADV_FREE), NAME(MADV_REMOVE), NAME(MADV_DONTFORK), NAME(MADV_DOFORK),
      NAME(MADV_MERGEABLE), NAME(MADV_UNMERGEABLE), NAME(MADV_HUGEPAGE), NAME(MADV_NOHUGEPAGE), NAME(MADV_DONTDUMP),
      NAME(MADV_DODUMP), NAME(MADV_WIPEONFORK), NAME(MADV_KEEPONFORK), NAME(MADV_COLD), NAME(MADV_PAGEOUT),
      NAME(MADV_POPULATE_READ), NAME(MADV_POPULATE_WRITE), { "MADV_DONTNEED_LOCKED", 24 }, { "MADV_COLLAPSE", 25 },
      NAME(MADV_HWPOISON), { "MADV_SOFT_OFFLINE", 101 });

enum {
	TYPE_MASK = 0xf,
	HUGE_SHIFT = 26,
};

PRINT(print_map_flags)
{
	const uint64_t flags = (unsigned)ARG & ((1u << HUGE_SHIFT) - 1) & ~(unsigned)TYPE_MASK;
	const unsigned huge = (unsigned)ARG >> HUGE_SHIFT;

	const char *type = name_of(&map_types, ARG & TYPE_MASK);

	if (d->target->style.constants == KYMO_CONSTANTS_NUMBERS) {
		put(d, "%#x", (unsigned)ARG);
		return;
	}
	if (type) {
		put_flags_after(d, &map_flags, type, ARG & ((1u << HUGE_SHIFT) - 1), flags);
	} else {
		put_name(d, &map_types, ARG & TYPE_MASK);
		puts_(d, flags ? "|" : "");
		if (flags)
			put_flags(d, &map_flags, flags);
	}
	if (huge)
		put(d, "|%u<<MAP_HUGE_SHIFT", huge);
}

PRINT(print_offset)
{
	put(d, "%#" PRIx64, ARG);
}

PRINT(print_remap_flags)
{
	put_flags(d, &remap_flags, ARG);
	d->call->is_stopped = !(ARG & MREMAP_FIXED);
}

static void put_residence(struct decode *d, const void *bytes)
{
	put(d, "%d", *(const unsigned char *)bytes & 1);
}

PRINT(print_residence)
{
	const uint64_t size = d->call->args[1];

	put_array(d, ARG, size / KYMO_PAGE_SIZE + !!(size % KYMO_PAGE_SIZE), 1, put_residence);
}

const struct kind k_residence[1] = { { print_residence, NULL, AT_EXIT } };
const struct kind k_prot[1] = { { print_flags_long, &prots, 0 } };
const struct kind k_map_flags[1] = { { print_map_flags, NULL, 0 } };
const struct kind k_map_offset[1] = { { print_offset, NULL, 0 } };
const struct kind k_advice[1] = { { print_name, &advices, 0 } };
const struct kind k_remap_flags[1] = { { print_remap_flags, NULL, 0 } };
const struct kind k_msync[1] = { { print_flags, &msync_flags, 0 } };
const struct kind k_mlockall[1] = { { print_flags, &mlockall_flags, 0 } };
const struct kind k_mlock2[1] = { { print_flags, &mlock2_flags, 0 } };
