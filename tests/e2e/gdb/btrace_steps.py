"""In gdb: step the program instruction by instruction, from where it stands to the address $last. Print the address of
each instruction that is executed, as this file understands it, without kymo."""
import gdb


def main():
    last = int(gdb.parse_and_eval('(long)$last'))
    architecture = gdb.selected_frame().architecture()
    before = None
    while True:
        pc = gdb.selected_frame().pc()
        if pc == last:
            return
        # A repeated string instruction is one, however often it is stepped.
        if pc != before or not architecture.disassemble(pc)[0]['asm'].startswith('rep'):
            print(f'STEP {pc:#x}')
        before = pc
        gdb.execute('stepi', to_string=True)


main()
