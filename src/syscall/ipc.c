/* System V shared memory, semaphores and messages. */
#include "syscall/ipc.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/print.h"

NAMES(get_flags, "", NAME(IPC_CREAT), NAME(IPC_EXCL), NAME(IPC_NOWAIT));
NAMES(shm_flags, "", NAME(IPC_CREAT), NAME(IPC_EXCL), NAME(SHM_HUGETLB), NAME(SHM_NORESERVE));
NAMES(attach_flags, "SHM_???", NAME(SHM_RDONLY), NAME(SHM_RND), NAME(SHM_REMAP), NAME(SHM_EXEC));
NAMES(shm_commands, "SHM_???", NAME(IPC_RMID), NAME(IPC_SET), NAME(IPC_STAT), NAME(IPC_INFO), NAME(SHM_STAT),
      NAME(SHM_INFO), { "SHM_STAT_ANY", 15 }, NAME(SHM_LOCK), NAME(SHM_UNLOCK));
NAMES(sem_commands, "SEM_???", NAME(IPC_RMID), NAME(IPC_SET), NAME(IPC_STAT), NAME(IPC_INFO), NAME(SEM_STAT),
      NAME(SEM_INFO), { "SEM_STAT_ANY", 20 }, NAME(GETPID), NAME(GETVAL), NAME(GETALL), NAME(GETNCNT), NAME(GETZCNT),
      NAME(SETVAL), NAME(SETALL));
NAMES(msg_commands, "MSG_???", NAME(IPC_RMID), NAME(IPC_SET), NAME(IPC_STAT), NAME(IPC_INFO), NAME(MSG_STAT),
      NAME(MSG_INFO), { "MSG_STAT_ANY", 13 });
NAMES(sem_flags, "SEM_???", NAME(SEM_UNDO), NAME(IPC_NOWAIT));
NAMES(msg_flags, "MSG_???", NAME(MSG_NOERROR), NAME(MSG_EXCEPT), { "MSG_COPY", MSG_COPY }, NAME(IPC_NOWAIT));

#undef SHM_HUGE_SHIFT
enum { SHM_HUGE_SHIFT = 26 }; /* the size of huge pages, as with mmap */
enum { FORM_64 = 0x100 };

PRINT(print_key)
{
	if ((int)ARG)
		put(d, "%#x", (unsigned)ARG);
	else
		put_constant(d, "IPC_PRIVATE", 0);
}

/* Flags and, last, permissions. */
PRINT(print_get_flags)
{
	const unsigned huge = data == &shm_flags ? (unsigned)ARG >> SHM_HUGE_SHIFT : 0;
	const unsigned flags = ((unsigned)ARG & ~0777u) - (huge << SHM_HUGE_SHIFT);

	if (flags) {
		put_flags(d, data, flags);
		puts_(d, "|");
	}
	if (huge) {
		put(d, "%u<<", huge);
		put_constant(d, "SHM_HUGE_SHIFT", SHM_HUGE_SHIFT);
		puts_(d, "|");
	}
	put_permissions(d, (unsigned)ARG & 0777);
}

/* glibc's programs of 32 bits ask for the structures of today by a bit. */
PRINT(print_command)
{
	const unsigned command = (unsigned)ARG;

	if (command & FORM_64) {
		put_hex_constant(d, "IPC_64", FORM_64);
		puts_(d, "|");
	}
	put_name(d, data, command & ~(unsigned)FORM_64);
}

static void put_sembuf(struct decode *d, const void *bytes)
{
	struct sembuf buf;

	memcpy(&buf, bytes, sizeof(buf));
	put(d, "{sem_num=%u, sem_op=%d, sem_flg=", buf.sem_num, buf.sem_op);
	put_flags(d, &sem_flags, (uint16_t)buf.sem_flg);
	puts_(d, "}");
}

PRINT(print_sembufs)
{
	put_array(d, ARG, (unsigned)d->call->args[arg + 1], sizeof(struct sembuf), put_sembuf);
}

/* A type, and as many bytes as the next argument says. */
PRINT(print_message)
{
	int64_t type;

	if (!fetch_or_put(d, ARG, &type, sizeof(type)))
		return;
	put(d, "{mtype=%" PRId64 ", mtext=", type);
	put_bytes(d, ARG + sizeof(type), d->call->args[arg + 1]);
	puts_(d, "}");
}

const struct kind k_ipc_key[1] = { { print_key, NULL, 0 } };
const struct kind k_ipc_flags[1] = { { print_get_flags, &get_flags, 0 } };
const struct kind k_shm_flags[1] = { { print_get_flags, &shm_flags, 0 } };
const struct kind k_shmat_flags[1] = { { print_flags, &attach_flags, 0 } };
const struct kind k_shm_command[1] = { { print_command, &shm_commands, 0 } };
const struct kind k_sem_command[1] = { { print_command, &sem_commands, 0 } };
const struct kind k_msg_command[1] = { { print_command, &msg_commands, 0 } };
const struct kind k_sembufs[1] = { { print_sembufs, NULL, 0 } };
const struct kind k_message_in[1] = { { print_message, NULL, 0 } };
const struct kind k_message_out[1] = { { print_message, NULL, AT_EXIT } };
const struct kind k_message_flags[1] = { { print_flags, &msg_flags, 0 } };
