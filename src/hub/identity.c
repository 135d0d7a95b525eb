#include "hub/identity.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int kymo_identity_find(const char *name, struct kymo_identity *ret)
{
	struct kymo_identity identity = { .n_groups = 0 };
	const struct passwd *user;

	errno = 0;
	user = getpwnam(name);
	if (!user)
		return errno && errno != ESRCH && errno != EPERM && errno != EBADF ? -errno : -ENOENT;
	identity.user = user->pw_uid;
	identity.group = user->pw_gid;
	/* It gives the number that is wanted, which may have grown when it is asked again. */
	while (getgrouplist(name, identity.group, identity.groups, &identity.n_groups) < 0) {
		gid_t *groups = reallocarray(identity.groups, (size_t)identity.n_groups, sizeof(*groups));

		if (!groups) {
			free(identity.groups);
			return -ENOMEM;
		}
		identity.groups = groups;
	}
	*ret = identity;
	return 0;
}

void kymo_identity_deinit(struct kymo_identity *identity)
{
	free(identity->groups);
	*identity = (struct kymo_identity){ .n_groups = 0 };
}

/* By system calls: the C library's functions change all threads, and this child has one. */
int hub_identity_take(const struct kymo_identity *identity)
{
	if (syscall(SYS_setgroups, (size_t)identity->n_groups, identity->groups) ||
	    syscall(SYS_setresgid, identity->group, identity->group, identity->group) ||
	    syscall(SYS_setresuid, identity->user, identity->user, identity->user))
		return -errno;
	return 0;
}
