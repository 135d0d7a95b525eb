/* Calls with socket options, addresses and control messages of all kinds, on a descriptor that is not there. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int levels[] = { 0,   1,   6,   17,  41,  58,  132, 136, 255, 256, 257, 261, 262, 263, 266, 268,
			      269, 270, 271, 272, 273, 274, 275, 276, 277, 278, 279, 280, 281, 282, 283, 300 };
static const int structured[] = { 0, 1, 41, 255, 263, 270 };
static const int sizes[] = { -1, 0, 1, 3, 4, 5, 7, 8, 11, 12, 15, 16, 20, 40, 136, 140 };

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Ends where nothing can be read any more. */
static char *page_end(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(pages + 4096, 4096);
	return pages + 4096;
}

static void option(int is_set, int level, int name, void *value, int size)
{
	if (is_set)
		syscall(SYS_setsockopt, -1, level, name, value, size);
	else
		syscall(SYS_getsockopt, -1, level, name, value, &size);
}

/* Numbers of interfaces are 1, which is the loopback, or none that there is. */
static void options(int is_set)
{
	char *end = page_end();
	uint32_t value[64];

	for (unsigned l = 0; l < COUNT(levels); l++)
		for (int name = 0; name < 140; name++)
			option(is_set, levels[l], name, (uint32_t[]){ 7 }, 4);
	for (int pattern = 0; pattern < 2; pattern++) {
		for (unsigned i = 0; i < COUNT(value); i++)
			value[i] = pattern ? 0xfefefefe : 1;
		for (unsigned l = 0; l < COUNT(structured); l++)
			for (int name = 0; name < 80; name++)
				for (unsigned s = 0; s < COUNT(sizes); s++) {
					if (structured[l] == 255 && sizes[s] < 4)
						continue; /* strace shows what it read before */
					option(is_set, structured[l], name, value, sizes[s]);
				}
	}
	for (int name = 0; name < 50; name++) {
		option(is_set, 0, name, end - 4, 136);
		option(is_set, 1, name, end - 2, 4);
		option(is_set, 263, name, end - 12, 16);
		option(is_set, 1, name, NULL, 4);
	}
}

static void addresses(void)
{
	static const short families[] = { 0, 1, 2, 3, 4, 5, 9, 10, 16, 17, 18, 38, 40, 44, 99 };
	static const unsigned char sign[7] = { 'K' << 1, 'Y' << 1, '1' << 1, 'M' << 1, ' ' << 1, ' ' << 1, 6 };
	unsigned char bytes[140];

	for (unsigned f = 0; f < COUNT(families); f++)
		for (int size = 0; size < 140; size += size < 36 ? 1 : 13) {
			for (unsigned i = 2; i < sizeof(bytes); i++)
				bytes[i] = (unsigned char)(i < 6 ? 1 : i + 'A');
			bytes[0] = (unsigned char)families[f];
			bytes[1] = 0;
			bytes[4] = 1, bytes[5] = bytes[6] = bytes[7] = 0;
			bytes[10] = 0;
			syscall(SYS_connect, -1, bytes, size);
		}
	for (uint32_t i = 0; i < 40; i++) {
		uint32_t machine[4] = { 40, i == 7 ? UINT32_MAX : i * 80, i == 4 ? UINT32_MAX : i,
					i % 5 | (i > 30 ? i << 16 : 0) };
		uint32_t xdp[4] = { 44 | i << 16, i ? i + 0x10000000 : 1, i, i % 4 };
		struct {
			uint16_t family;
			char type[14];
			uint32_t feature, mask;
			char name[104];
		} cipher = { 38, "hash", i << 10, i, "sha256" };

		syscall(SYS_connect, -1, machine, 16);
		syscall(SYS_connect, -1, xdp, 16);
		syscall(SYS_connect, -1, &cipher, 22 + i);
		memset(cipher.type, 't', 14);
		memset(cipher.name, 'n', 60);
		syscall(SYS_connect, -1, &cipher, 40 + 2 * i);
	}
	for (int hardware = 0; hardware < 1100; hardware++) {
		uint16_t packet[10] = { 17,
					(uint16_t)(hardware << 8 | hardware >> 8),
					1,
					0,
					(uint16_t)hardware,
					(uint16_t)(hardware % 6 | (hardware % 11) << 8),
					1,
					2,
					3 };

		syscall(SYS_connect, -1, packet, 20);
	}
	for (int count = -1; count < 10; count++)
		for (int size = 16; size < 82; size += 3) {
			memset(bytes, 0, sizeof(bytes));
			bytes[0] = 3;
			memcpy(bytes + 2, sign, 7);
			memcpy(bytes + 12, &count, 4);
			for (int i = 0; i < 9; i++) {
				memcpy(bytes + 16 + 7 * i, sign, 7);
				bytes[16 + 7 * i + i % 6] = (unsigned char)(" A\1*\376/ab"[i % 8] << 1);
			}
			syscall(SYS_connect, -1, bytes, size);
		}
}

/* What strace knows; of others it shows no bytes. */
static const struct {
	int level, first, last;
} known[] = { { 0, 1, 3 }, { 0, 6, 8 },   { 0, 11, 11 }, { 0, 20, 20 }, { 0, 23, 23 },
	      { 1, 1, 3 }, { 1, 29, 29 }, { 1, 35, 35 }, { 1, 37, 37 }, { 1, 63, 65 } };

static void control_of(int level, int type, char *control, size_t room, size_t length)
{
	struct cmsghdr header = { .cmsg_len = length, .cmsg_level = level, .cmsg_type = type };
	struct msghdr message = { .msg_control = control, .msg_controllen = room };

	memcpy(control, &header, room < sizeof(header) ? room : sizeof(header));
	syscall(SYS_sendmsg, -1, &message, 0);
}

static void control_messages(void)
{
	static const unsigned lengths[] = { 0, 1, 3, 4, 5, 8, 11, 12, 15, 16, 20, 24, 28, 31, 32, 47, 48, 49, 60 };
	char *end = page_end();
	char control[256];

	for (unsigned k = 0; k < COUNT(known); k++)
		for (int type = known[k].first; type <= known[k].last; type++)
			for (unsigned l = 0; l < COUNT(lengths); l++) {
				memset(control, 0, sizeof(control));
				for (unsigned i = 16; i < sizeof(control); i += 4)
					control[i] = 1;
				control_of(known[k].level, type, control, 16 + lengths[l], 16 + lengths[l]);
			}
	for (size_t room = 0; room <= 64; room++)
		for (size_t length = 0; length <= room + 9; length += 1 + length / 20) {
			char *at = end - room;

			for (size_t i = 0; i < room; i++)
				at[i] = i % 4 == 0; /* each is the header of one more with descriptors */
			if (room >= 40 && length >= 20) {
				struct cmsghdr second = { .cmsg_len = 20, .cmsg_level = 1, .cmsg_type = 1 };

				memcpy(at + 24, &second, sizeof(second));
			}
			control_of(1, 1, at, room, length);
		}
}

int main(int argc, char **argv)
{
	if (!strcmp(argv[1], "set"))
		options(1);
	else if (!strcmp(argv[1], "get"))
		options(0);
	else if (!strcmp(argv[1], "addresses"))
		addresses();
	else
		control_messages();
	return 0;
}
