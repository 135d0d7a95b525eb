/* The user that a launched command runs as. */
#ifndef KYMO_HUB_IDENTITY_H
#define KYMO_HUB_IDENTITY_H

#include <stddef.h>
#include <sys/types.h>

struct kymo_identity {
	uid_t user;
	gid_t group;
	gid_t *groups; /* owned */
	int n_groups;
};

/*
 * Look up a user with its group and its supplementary groups, as login(1) gives them. kymo_identity_deinit() after
 * success. 0, -ENOENT: there is no such user, or another negative errno. Reads the user database: not for a child that
 * has yet to execute something.
 */
int kymo_identity_find(const char *name, struct kymo_identity *ret);

void kymo_identity_deinit(struct kymo_identity *identity);

/*
 * Make this process that user's, permanently: real, effective and saved ids. For a child after fork(), as it makes
 * system calls alone. 0, or a negative errno: -EPERM without CAP_SETUID and CAP_SETGID.
 */
int hub_identity_take(const struct kymo_identity *identity);

#endif
