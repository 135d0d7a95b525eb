/* What libkymo-marker reads of a module's file: build-id and symbols. */
#include "../lib/marker/record_image.c"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lib_module module = { .base = 0 };
	struct record_image image = { .module = &module };
	struct file file = { .fd = memfd_create("image", MFD_CLOEXEC), .size = size };
	char name[64];

	if (file.fd < 0 || kymo_write_all(file.fd, data, size))
		abort();
	if (read_at(&file, &file.header, sizeof(file.header), 0)) {
		read_build_id(&file, &image);
		if (read_symbols(&file, &image) == 0)
			for (uintptr_t at = 0; at < 0x2000; at += 0x10)
				kymo_record_image_describe(&image, at, name, sizeof(name));
	}
	close(file.fd);
	kymo_record_image_deinit(&image);
	return 0;
}
