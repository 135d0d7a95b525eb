"""Debug information that several files share, as dwz makes it. It is written by hand here, as dwz is seldom installed."""
from kymotest import check_equal, check_matches, events, kymo, program, record, run

ID = 'alink-of-twenty-bytes'[:20]

# A structure of two numbers, and a pointer to it.
SHARED = r'''
	.section .note.gnu.build-id, "", @note
	.long 4, 20, 3
	.asciz "GNU"
	.ascii "ID"
	.section .debug_abbrev, "", @progbits
	.uleb128 1, 0x3c	# partial unit, with children
	.byte 1, 0, 0
	.uleb128 2, 0x24	# base type: name, size, encoding
	.byte 0, 0x03, 0x08, 0x0b, 0x0b, 0x3e, 0x0b, 0, 0
	.uleb128 3, 0x13	# structure: name, size
	.byte 1, 0x03, 0x08, 0x0b, 0x0b, 0, 0
	.uleb128 4, 0x0d	# member: name, type, offset
	.byte 0, 0x03, 0x08, 0x49, 0x13, 0x38, 0x0b, 0, 0
	.uleb128 5, 0x0f	# pointer: type
	.byte 0, 0x49, 0x13, 0, 0
	.byte 0
	.section .debug_info, "", @progbits
unit:	.long end - start
start:	.short 4
	.long 0
	.byte 8
	.uleb128 1
pointer: .uleb128 5
	.long pair - unit
number:	.uleb128 2
	.asciz "long"
	.byte 8, 5
pair:	.uleb128 3
	.asciz "pair"
	.byte 16
	.uleb128 4
	.asciz "left"
	.long number - unit
	.byte 0
	.uleb128 4
	.asciz "right"
	.long number - unit
	.byte 8
	.byte 0, 0
end:
'''
POINTER = 12  # bytes before it

# take(const struct pair *p)
APP = r'''
	.text
	.globl take
	.type take, @function
take:	lea 1(%rdi), %rax
	ret
after:	.size take, . - take
	.globl main
	.type main, @function
main:	sub $8, %rsp
	lea values(%rip), %rdi
	call take
	xor %eax, %eax
	add $8, %rsp
	ret
	.size main, . - main
	.data
values:	.quad 7, -8
	.section .debug_abbrev, "", @progbits
abbreviations:
	.uleb128 1, 0x11	# compile unit: name, language, addresses
	.byte 1, 0x03, 0x08, 0x13, 0x0b, 0x11, 0x01, 0x12, 0x06, 0, 0
	.uleb128 2, 0x2e	# function: name, addresses
	.byte 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06, 0, 0
	.uleb128 3, 0x05	# parameter: name, type in the other file, location
	.byte 0, 0x03, 0x08, 0x49
	.uleb128 0x1f20
	.byte 0x02, 0x18, 0, 0
	.byte 0
	.section .debug_info, "", @progbits
	.long end - start
start:	.short 4
	.long abbreviations
	.byte 8
	.uleb128 1
	.asciz "app.c"
	.byte 0x0c
	.quad take
	.long after - take
	.uleb128 2
	.asciz "take"
	.quad take
	.long after - take
	.uleb128 3
	.asciz "p"
	.long POINTER
	.uleb128 1
	.byte 0x55		# in %rdi
	.byte 0, 0
end:
	.section .gnu_debugaltlink, "", @progbits
	.asciz "shared.dwz"
	.ascii "ID"
	.section .note.GNU-stack, "", @progbits
'''


def build(tmp):
    (tmp / 'shared.s').write_text(SHARED.replace('"ID"', f'"{ID}"'))
    (tmp / 'app.s').write_text(APP.replace('"ID"', f'"{ID}"').replace('POINTER', str(POINTER)))
    run('as', '-o', 'shared.dwz', 'shared.s').ok()
    run(program('gcc'), '-no-pie', '-o', 'app', 'app.s').ok()


def test_types_are_read_of_the_file_that_is_shared(tmp):
    build(tmp)
    check_matches(
        kymo('list', '--vars', './app:take').ok().out, r'^  p  struct pair \*  register, %di$', 'what is listed')
    record('-p', './app:take p->left p->right *p', '--', './app').ok()
    check_equal([(event['left'], event['right']) for event in events()], [(7, -8)], 'values')
    check_matches(kymo('report', '--events').ok().out, r'p=\{left = 7, right = -8\}', 'a structure')


def test_a_shared_file_of_another_build_is_not_taken(tmp):
    build(tmp)
    (tmp / 'shared.dwz').write_bytes((tmp / 'shared.dwz').read_bytes().replace(ID.encode(), ID.upper().encode()))
    check_matches(kymo('list', '--vars', './app:take').ok().out, r'^  p  void ', 'what is listed')
