#include "arch/clone_stand.h"

#include <sys/user.h>

#include "arch/clones.h"
#include "arch/remote.h"
#include "arch/x86_64/clone.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/marks.h"

bool kymo_clones_find(const struct kymo_clones *clones, uint64_t vaddr, size_t *index_ret)
{
	for (size_t i = 0; i < kymo_clones_n(clones); i++) {
		uint32_t first_site;
		size_t n;
		const struct kymo_extent *parts = kymo_clone_parts(kymo_clones_at(clones, i, &first_site), &n);

		for (size_t k = 0; k < n; k++) {
			if (vaddr < parts[k].start || vaddr >= parts[k].end)
				continue;
			*index_ret = i;
			return true;
		}
	}
	return false;
}

static const struct kymo_clone_point *copy_of(const struct kymo_clones *clones, size_t index, uint64_t vaddr,
					      size_t *n_left_ret)
{
	size_t n;
	const struct kymo_clone_point *points = kymo_clones_points(clones, index, &n);

	for (size_t i = 0; i < n; i++) {
		*n_left_ret = n - i;
		if (points[i].is_copy && points[i].vaddr == vaddr)
			return &points[i];
	}
	return NULL;
}

/* IN: the function in `ret`, and its point that is the copy of `vaddr`. */
static enum kymo_clone_stand_kind find_copy(const struct kymo_clones *clones, uint64_t vaddr,
					    struct kymo_clone_stand *ret, const struct kymo_clone_point **point_ret,
					    size_t *n_left_ret)
{
	size_t index;

	if (!kymo_clones_find(clones, vaddr, &index))
		return KYMO_STANDS_OUTSIDE;
	*ret = (struct kymo_clone_stand){ .index = index, .held = KYMO_CLONE_HOLDS_NONE };
	*point_ret = copy_of(clones, index, vaddr, n_left_ret);
	return *point_ret ? KYMO_STANDS_IN : KYMO_STANDS_ASTRAY;
}

static enum kymo_clone_stand_kind stand_at(const struct kymo_clones *clones, uint64_t vaddr,
					   struct kymo_clone_stand *ret)
{
	const struct kymo_clone_point *point;
	size_t n_left;
	const enum kymo_clone_stand_kind kind = find_copy(clones, vaddr, ret, &point, &n_left);

	if (kind != KYMO_STANDS_IN)
		return kind;
	ret->at = point->at;
	ret->held = point->held;
	ret->lowered = point->lowered;
	return KYMO_STANDS_IN;
}

/* A system call of two bytes is copied as it is: the kernel goes back by as many to make it again. The next point is
 * right behind it. */
static enum kymo_clone_stand_kind stand_after_call(const struct kymo_clones *clones, uint64_t vaddr,
						   struct kymo_clone_stand *ret)
{
	const struct kymo_clone_point *point;
	size_t n_left;
	const enum kymo_clone_stand_kind kind = find_copy(clones, vaddr, ret, &point, &n_left);

	if (kind != KYMO_STANDS_IN)
		return kind;
	if (n_left < 2 || point[1].at != point->at + KYMO_REMOTE_CALL)
		return KYMO_STANDS_ASTRAY;
	ret->at = point[1].at;
	return KYMO_STANDS_IN;
}

static bool is_call(const struct kymo_clones *clones, uint64_t vaddr)
{
	uint32_t first_site;
	size_t size = 0;
	const uint8_t *bytes = NULL;

	if (kymo_clones_n(clones))
		bytes = x86_text_at(kymo_clones_at(clones, 0, &first_site)->map, vaddr, &size);
	return bytes && size >= KYMO_REMOTE_CALL && kymo_remote_is_call(bytes);
}

enum kymo_clone_stand_kind kymo_clones_stand(const struct kymo_clones *clones, const struct user_regs_struct *registers,
					     uint64_t bias, struct kymo_clone_stand *ret)
{
	const uint64_t vaddr = registers->rip - bias;
	const bool is_in_call = (int64_t)registers->orig_rax >= 0 && is_call(clones, vaddr - KYMO_REMOTE_CALL);

	return is_in_call ? stand_after_call(clones, vaddr - KYMO_REMOTE_CALL, ret) : stand_at(clones, vaddr, ret);
}

unsigned long long *kymo_clone_register(struct user_regs_struct *registers, unsigned int number)
{
	unsigned long long *const general[16] = {
		[RAX] = &registers->rax, [RCX] = &registers->rcx, [RDX] = &registers->rdx, [RBX] = &registers->rbx,
		[RSP] = &registers->rsp, [RBP] = &registers->rbp, [RSI] = &registers->rsi, [RDI] = &registers->rdi,
		[R8] = &registers->r8,   [R9] = &registers->r9,   [R10] = &registers->r10, [R11] = &registers->r11,
		[R12] = &registers->r12, [R13] = &registers->r13, [R14] = &registers->r14, [R15] = &registers->r15,
	};

	return general[number & 15];
}

void kymo_clone_stand_move(const struct kymo_clone_stand *stand, uint64_t code, uint64_t position,
			   struct user_regs_struct *registers)
{
	registers->rip = code + stand->at;
	registers->rsp -= stand->lowered;
	if (stand->held < KYMO_CLONE_HOLDS_NONE)
		*kymo_clone_register(registers, stand->held) = position;
}
