#include "probe/memory/spent.h"

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPENT_MAX 4

static _Thread_local struct {
	void *head;
	uint64_t size;
	int fd;
} spent[SPENT_MAX];
static _Thread_local size_t n_spent;

bool kymo_spent_free(void)
{
	if (!n_spent)
		return false;
	n_spent--;
	munmap(spent[n_spent].head, spent[n_spent].size);
	close(spent[n_spent].fd);
	return true;
}

void kymo_spent_put(void *head, uint64_t size, int fd)
{
	if (n_spent == SPENT_MAX)
		kymo_spent_free();
	spent[n_spent].head = head;
	spent[n_spent].size = size;
	spent[n_spent++].fd = fd;
}
