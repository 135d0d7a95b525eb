#include "branch/raw_bts.h"

#include <string.h>

#include "branch/raw.h"
#include "branch/raw_records.h"

/* As the processor writes it: Intel SDM 3, "Branch Trace Store". */
struct bts_record {
	uint64_t from, to, flags;
};

int branch_bts_decode(const struct branch_raw *raw)
{
	struct branch_raw_records records = { .raw = raw };

	for (size_t at = 0; at + sizeof(struct bts_record) <= raw->size; at += sizeof(struct bts_record)) {
		struct bts_record record;

		memcpy(&record, raw->bytes + at, sizeof(record));
		if (record.from || record.to) /* else it was not written yet */
			branch_raw_take(&records, record.from, record.to, false);
	}
	return 0;
}
