/* In which order the jumps of catches are written. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_CLONE_ORDER_H
#define KYMO_ARCH_X86_64_CLONE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct kymo_clone;
struct kymo_refusal;

/* Where an island may be. */
struct x86_clone_space {
	bool (*is_free)(uint64_t vaddr, void *data); /* the bytes of a jump there */
	void (*take)(uint64_t vaddr, void *data);    /* they are not any more */
	void *data;
};

/* Find `steps` of the clone, whose catches are known. Some of these may get another island. -EPERM where there is no
 * order; -ENOMEM. */
int x86_clone_order(struct kymo_clone *clone, const struct x86_clone_space *space, struct kymo_refusal *refusal);

#endif
