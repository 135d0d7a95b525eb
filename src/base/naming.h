/*
 * How the values of a field are shown, beyond the number that they are: by the names of an enumeration, or as
 * characters. A naming is shared by all that it is of, and freed with the last of them; NULL is that of a plain number.
 */
#ifndef KYMO_BASE_NAMING_H
#define KYMO_BASE_NAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KYMO_NAMING_NAMES_MAX 1024
#define KYMO_NAMING_NAME_MAX 255  /* bytes; longer ones are cut */
#define KYMO_NAMING_TEXT_MAX 1024 /* bytes, of flags that are joined */

struct kymo_naming_name {
	char *name;
	int64_t value; /* as records have it: with the sign or zeros before the bytes of its type */
};

struct kymo_naming {
	unsigned int n_users;
	bool is_character; /* of a byte; there are no names then */
	bool is_flags;     /* each name but that of 0 is one bit, and no two are the same */
	size_t n;
	struct kymo_naming_name *names; /* by their values; no two have the same */
};

/* One without names, for kymo_naming_add(); NULL when memory is out. */
struct kymo_naming *kymo_naming_create(void);

/*
 * Name a value. Of several names the first one of a value stays, as in gdb. -ENOMEM; -E2BIG: there are
 * KYMO_NAMING_NAMES_MAX already, or the name is empty. The naming has one user then.
 */
int kymo_naming_add(struct kymo_naming *naming, const char *name, size_t size, int64_t value);

/* That of characters, and that of truth values: "false", "true". Shared already; static. */
struct kymo_naming *kymo_naming_characters(void);
struct kymo_naming *kymo_naming_truth(void);

/* One user more: returns `naming`, which may be NULL. */
struct kymo_naming *kymo_naming_share(struct kymo_naming *naming);

/* One user less. */
void kymo_naming_release(struct kymo_naming *naming);

/* The name of that very value, or NULL. */
const char *kymo_naming_find(const struct kymo_naming *naming, int64_t value);

/*
 * The value by its names: "BUSY", or of flags "READ | WRITE". A fresh string. NULL where some of it has no name,
 * the names of flags take more than KYMO_NAMING_TEXT_MAX together, `naming` is NULL, or memory is out: then it is shown
 * as the number that it is.
 */
char *kymo_naming_text(const struct kymo_naming *naming, int64_t value);

#endif
