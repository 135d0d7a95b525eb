"""In gdb: step the program instruction by instruction, and print each taken branch, as this file understands it,
without kymo."""
import gdb

RETURNS = ('ret', 'repz ret', 'bnd ret')


def main():
    gdb.execute('starti', to_string=True)
    architecture = gdb.selected_frame().architecture()
    last = None
    while gdb.selected_inferior().pid:
        pc = gdb.selected_frame().pc()
        if last:
            at, length, text = last
            is_jump = text.startswith(('jmp', 'notrack jmp', 'call', 'notrack call', *RETURNS))
            if is_jump or pc != at + length and text.startswith('j'):
                print(f'BRANCH {at:#x} {pc:#x}')
        instruction = architecture.disassemble(pc)[0]
        last = pc, instruction['length'], instruction['asm']
        gdb.execute('stepi', to_string=True)


main()
