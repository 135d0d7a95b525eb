/* Loops in which a register has the position. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_CLONE_STRETCH_H
#define KYMO_ARCH_X86_64_CLONE_STRETCH_H

struct kymo_clone;

/* Find the stretches of a clone, whose sites and held register are known. 0 or -ENOMEM. */
int x86_clone_find_stretches(struct kymo_clone *clone);

#endif
