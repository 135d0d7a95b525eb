/* Fewer entries in a ring. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_CLONE_THIN_H
#define KYMO_ARCH_X86_64_CLONE_THIN_H

struct kymo_clone;

/* Sites that entries need not have to tell branches are none afterwards, those that cost most first. Which registers
 * are live is known. 0 or -ENOMEM. */
int x86_clone_thin(struct kymo_clone *clone);

#endif
