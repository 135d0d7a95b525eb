/* That entries of a ring tell which branches were taken. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_CLONE_WAYS_H
#define KYMO_ARCH_X86_64_CLONE_WAYS_H

struct kymo_clone;

/* Make more instructions sites, until each way from one site to the next is the only one between these two. Catches
 * are known. 0 or -ENOMEM. */
int x86_clone_divide(struct kymo_clone *clone);

#endif
