/* The notes of a loaded module, as libkymo-marker reads them: the input is what a module has in memory, its first byte
 * says where the notes begin. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../lib/marker/notes.c"

#define IMAGE_SIZE 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(64) unsigned char image[IMAGE_SIZE];
	if (size < 1 || size > sizeof(image))
		return 0;
	size_t notes = data[0] * 16u;
	ElfW(Phdr) phdrs[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = 0, .p_memsz = 1024 },
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = 1024, .p_memsz = 1024 },
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = 0, .p_memsz = IMAGE_SIZE },
		{ .p_type = PT_NOTE,
		  .p_flags = PF_R,
		  .p_vaddr = notes,
		  .p_align = 4,
		  .p_memsz = size > notes ? size - notes : 0 },
	};
	struct lib_found found = { (ElfW(Addr))(uintptr_t)image, phdrs, 4 };
	struct lib_module *module;

	memset(image, 0, sizeof(image));
	memcpy(image, data + 1, size - 1);
	kymo_lib_has_notes(&found);
	if (kymo_lib_read_module(&found, &module) == 0) {
		for (size_t i = 0; i < module->n_markers; i++) {
			const struct lib_marker *marker = &module->markers[i];
			if (strlen(marker->name) >= IMAGE_SIZE || marker->n_sites + marker->n_locations == 0)
				__builtin_trap();
		}
		kymo_lib_destroy_module(module);
	}
	return 0;
}
