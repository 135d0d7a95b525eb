/* Any bytes as what a processor has recorded, beside code that may be anything: decoding ends, and reads nothing else.
 */
#include "branch/branch.h"
#include "branch/raw.h"
#include "branch/raw_bts.h"
#include "branch/raw_lbr.h"
#include "branch/raw_pt.h"
#include "fuzz.h"

#define CODE 0x10000u  /* where the code is */
#define CODE_SIZE 256u /* bytes, the first of the input */

static size_t read_code(uint64_t address, uint8_t *bytes, size_t size, void *data)
{
	if (address < CODE || address >= CODE + CODE_SIZE)
		return 0;
	if (size > CODE + CODE_SIZE - address)
		size = CODE + CODE_SIZE - address;
	memcpy(bytes, (const uint8_t *)data + (address - CODE), size);
	return size;
}

static void take(const struct kymo_branch *branch, bool is_gap, void *data)
{
	check(branch->kind < KYMO_BRANCH_KINDS);
	check(!is_gap || branch->kind == KYMO_BRANCH_ENTER);
	check(!branch->from == (branch->kind == KYMO_BRANCH_ENTER) || !branch->from);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const decoders[])(const struct branch_raw *raw) = { branch_pt_decode, branch_bts_decode,
									 branch_lbr_decode };
	uint8_t code[CODE_SIZE] = { 0 };
	struct branch_raw raw = { .read = read_code, .is_taken = take, .data = code };

	if (!size)
		return 0;
	memcpy(code, data + 1, size - 1 < sizeof(code) ? size - 1 : sizeof(code));
	raw.size = size - 1 < sizeof(code) ? 0 : size - 1 - sizeof(code);
	raw.bytes = data + size - raw.size;
	check(!decoders[*data % 3](&raw));
	return 0;
}
