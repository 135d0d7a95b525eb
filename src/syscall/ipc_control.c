/* msgctl, semctl and shmctl: what a command takes and gives depends on the command. Structures are tables of members.
 */
#include "syscall/ipc_control.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "syscall/decode.h"
#include "syscall/print.h"

enum { FORM_64 = 0x100, SHM_ANY = 15, SEM_ANY = 20, MSG_ANY = 13, STRUCT_SIZE_MAX = 128 };

enum form { SIGNED, UNSIGNED, PROCESS };

struct member {
	const char *name;
	uint16_t offset;
	uint8_t size;
	uint8_t form;
	bool is_set; /* IPC_SET reads it */
};

#define MEMBER(type, field, shown_as, set) \
	{ \
#field, offsetof(struct type, field), sizeof(((struct type *)NULL)->field), shown_as, set \
	}

static const struct member message_queue[] = {
	MEMBER(msqid_ds, msg_stime, UNSIGNED, false), MEMBER(msqid_ds, msg_rtime, UNSIGNED, false),
	MEMBER(msqid_ds, msg_ctime, UNSIGNED, false), MEMBER(msqid_ds, msg_qnum, UNSIGNED, false),
	MEMBER(msqid_ds, msg_qbytes, UNSIGNED, true), MEMBER(msqid_ds, msg_lspid, SIGNED, false),
	MEMBER(msqid_ds, msg_lrpid, SIGNED, false),
};
static const struct member message_info[] = {
	MEMBER(msginfo, msgpool, SIGNED, false), MEMBER(msginfo, msgmap, SIGNED, false),
	MEMBER(msginfo, msgmax, SIGNED, false),  MEMBER(msginfo, msgmnb, SIGNED, false),
	MEMBER(msginfo, msgmni, SIGNED, false),  MEMBER(msginfo, msgssz, SIGNED, false),
	MEMBER(msginfo, msgtql, SIGNED, false),  MEMBER(msginfo, msgseg, UNSIGNED, false),
};
static const struct member semaphores[] = {
	MEMBER(semid_ds, sem_otime, UNSIGNED, false),
	MEMBER(semid_ds, sem_ctime, UNSIGNED, false),
	MEMBER(semid_ds, sem_nsems, UNSIGNED, false),
};
static const struct member semaphore_info[] = {
	MEMBER(seminfo, semmap, SIGNED, false), MEMBER(seminfo, semmni, SIGNED, false),
	MEMBER(seminfo, semmns, SIGNED, false), MEMBER(seminfo, semmnu, SIGNED, false),
	MEMBER(seminfo, semmsl, SIGNED, false), MEMBER(seminfo, semopm, SIGNED, false),
	MEMBER(seminfo, semume, SIGNED, false), MEMBER(seminfo, semusz, SIGNED, false),
	MEMBER(seminfo, semvmx, SIGNED, false), MEMBER(seminfo, semaem, SIGNED, false),
};
static const struct member segment[] = {
	MEMBER(shmid_ds, shm_segsz, UNSIGNED, false), MEMBER(shmid_ds, shm_cpid, PROCESS, false),
	MEMBER(shmid_ds, shm_lpid, PROCESS, false),   MEMBER(shmid_ds, shm_nattch, UNSIGNED, false),
	MEMBER(shmid_ds, shm_atime, UNSIGNED, false), MEMBER(shmid_ds, shm_dtime, UNSIGNED, false),
	MEMBER(shmid_ds, shm_ctime, UNSIGNED, false),
};
static const struct member segment_limits[] = {
	MEMBER(shminfo, shmmax, UNSIGNED, false), MEMBER(shminfo, shmmin, UNSIGNED, false),
	MEMBER(shminfo, shmmni, UNSIGNED, false), MEMBER(shminfo, shmseg, UNSIGNED, false),
	MEMBER(shminfo, shmall, UNSIGNED, false),
};
static const struct member segment_info[] = {
	MEMBER(shm_info, used_ids, SIGNED, false),        MEMBER(shm_info, shm_tot, UNSIGNED, false),
	MEMBER(shm_info, shm_rss, UNSIGNED, false),       MEMBER(shm_info, shm_swp, UNSIGNED, false),
	MEMBER(shm_info, swap_attempts, UNSIGNED, false), MEMBER(shm_info, swap_successes, UNSIGNED, false),
};

/* A structure; where it begins with a struct ipc_perm, under what name. */
struct shape {
	const char *permissions;
	const struct member *members;
	size_t n, size;
};

struct control {
	unsigned command_arg, queried[3], informed[2];
	struct shape object, infos[2]; /* of IPC_INFO, and of the other command about the system */
};

#define SHAPE(permissions, members, type) \
	{ \
		permissions, members, kymo_countof(members), sizeof(struct type) \
	}

static const struct control message_control = {
	.command_arg = 1,
	.queried = { IPC_STAT, MSG_STAT, MSG_ANY },
	.informed = { IPC_INFO, MSG_INFO },
	.object = SHAPE("msg_perm", message_queue, msqid_ds),
	.infos = { SHAPE(NULL, message_info, msginfo), SHAPE(NULL, message_info, msginfo) },
};
static const struct control semaphore_control = {
	.command_arg = 2,
	.queried = { IPC_STAT, SEM_STAT, SEM_ANY },
	.informed = { IPC_INFO, SEM_INFO },
	.object = SHAPE("sem_perm", semaphores, semid_ds),
	.infos = { SHAPE(NULL, semaphore_info, seminfo), SHAPE(NULL, semaphore_info, seminfo) },
};
static const struct control segment_control = {
	.command_arg = 1,
	.queried = { IPC_STAT, SHM_STAT, SHM_ANY },
	.informed = { IPC_INFO, SHM_INFO },
	.object = SHAPE("shm_perm", segment, shmid_ds),
	.infos = { SHAPE(NULL, segment_limits, shminfo), SHAPE(NULL, segment_info, shm_info) },
};

/* ---- structures ------------------------------------------------------------------------------ */

static void put_member(struct decode *d, const struct member *member, const uint8_t *bytes)
{
	uint64_t value = 0;

	memcpy(&value, bytes + member->offset, member->size);
	put(d, "%s=", member->name);
	if (member->form == PROCESS)
		put_pid(d, (int)value);
	else if (member->form == SIGNED && member->size == sizeof(int))
		put(d, "%d", (int)value);
	else
		put(d, "%" PRIu64, value);
}

static void put_ipc_permissions(struct decode *d, const char *name, const uint8_t *bytes, bool is_set)
{
	struct ipc_perm perm;

	memcpy(&perm, bytes, sizeof(perm));
	put(d, "%s={uid=", name);
	put_id(d, perm.uid);
	puts_(d, ", gid=");
	put_id(d, perm.gid);
	puts_(d, ", mode=");
	put_permissions(d, perm.mode);
	if (!is_set) {
		put(d, ", key=%u, cuid=", (unsigned)perm.__key);
		put_id(d, perm.cuid);
		puts_(d, ", cgid=");
		put_id(d, perm.cgid);
	}
	puts_(d, "}");
}

static void put_shape(struct decode *d, const struct shape *shape, uint64_t address, bool is_set)
{
	uint8_t bytes[STRUCT_SIZE_MAX];
	bool any = shape->permissions;

	if (!fetch_or_put(d, address, bytes, shape->size))
		return;
	puts_(d, "{");
	if (shape->permissions)
		put_ipc_permissions(d, shape->permissions, bytes, is_set);
	for (size_t i = 0; i < shape->n; i++) {
		if (is_set && !shape->members[i].is_set)
			continue;
		puts_(d, any ? ", " : "");
		put_member(d, &shape->members[i], bytes);
		any = true;
	}
	puts_(d, "}");
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* What the kernel fills in; NULL: nothing. */
static const struct shape *filled_by(const struct control *control, unsigned command)
{
	for (size_t i = 0; i < kymo_countof(control->queried); i++)
		if (command == control->queried[i])
			return &control->object;
	for (size_t i = 0; i < kymo_countof(control->informed); i++)
		if (command == control->informed[i])
			return &control->infos[i];
	return NULL;
}

static unsigned command_of(const struct decode *d, const struct control *control)
{
	return (unsigned)d->call->args[control->command_arg] & ~(unsigned)FORM_64;
}

PRINT(print_argument)
{
	const struct control *control = data;
	const unsigned command = command_of(d, control);

	puts_(d, ", ");
	if (filled_by(control, command))
		return;
	d->call->is_stopped = true;
	if (command == IPC_SET)
		put_shape(d, &control->object, ARG, true);
	else
		put_address(d, ARG);
}

PRINT(print_answer)
{
	const struct control *control = data;
	const struct shape *shape = filled_by(control, command_of(d, control));

	if (shape)
		put_shape(d, shape, d->call->args[arg - 1], false);
}

const struct kind k_msgctl_in[1] = { { print_argument, &message_control, OWN_COMMA } };
const struct kind k_msgctl_out[1] = { { print_answer, &message_control, AT_EXIT | OWN_COMMA } };
const struct kind k_semctl_in[1] = { { print_argument, &semaphore_control, OWN_COMMA } };
const struct kind k_semctl_out[1] = { { print_answer, &semaphore_control, AT_EXIT | OWN_COMMA } };
const struct kind k_shmctl_in[1] = { { print_argument, &segment_control, OWN_COMMA } };
const struct kind k_shmctl_out[1] = { { print_answer, &segment_control, AT_EXIT | OWN_COMMA } };
