/*
 * Changing the text of this process while its threads run. Private to the library.
 */
#ifndef KYMO_LIB_TOGGLE_H
#define KYMO_LIB_TOGGLE_H

#include <stddef.h>

#include "markers.h"

/*
 * Turn `n` sites on or off, all of them step by step together. Each gets its own result in `error`; the first of them
 * is returned. The caller has the lock and has set the gates busy. When this returns each thread of the process runs
 * what stands there.
 *
 *	-EPERM	threads can't be synchronized: the kernel has no membarrier(2) for it (before 4.16), or a filter forbids
 *		it; or the text may not be written
 *	-EACCES	/proc/self/mem may not be opened (the process is not dumpable, see prctl(2)), or there is no /proc
 *	-EIO	the site was changed by something else than this library and kymo, or the kernel refuses the write
 *		(proc_mem.force_override=never)
 *	-EBUSY	a breakpoint or the kernel's uprobe is on the site
 *
 * A site with an error is as it was, or it is an instruction that does nothing.
 */
int kymo_lib_toggle(struct lib_site **sites, size_t n, bool on);

/* Whether the site's text is the NOP: others than this library may have put it back. */
bool kymo_lib_is_off(const struct lib_site *site);

/* The child of a fork() has to ask the kernel anew. */
void kymo_lib_forget_registration(void);

#endif
