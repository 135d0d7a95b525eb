"""gdb's "info os": what a stub says of the machine, beside what /proc and gdbserver say."""
import os
import pwd
import re
import shutil
import xml.etree.ElementTree
from pathlib import Path

from debugging import SERVER, Client, build, by_stdio, listen, loop, packet, threads_of
from kymotest import check, check_equal, check_matches, skip, start

STRANGE = 'a) <b> &"c"'


def read(client, type, size=0x1000):
    """An object in parts, as gdb reads it."""
    document, reply = '', 'm'
    while reply[0] == 'm':
        reply = client.ask(f'qXfer:osdata:read:{type}:{len(document):x},{size:x}')
        check(reply[0] in 'ml', 'an object', reply)
        document += re.sub(r'\}(.)', lambda escape: chr(ord(escape[1]) ^ 0x20), reply[1:], flags=re.DOTALL)
    return document


def rows(client, type):
    root = xml.etree.ElementTree.fromstring(read(client, type))
    return [{column.get('name'): column.text for column in item} for item in root]


def of(rows, pid):
    return [row for row in rows if row['pid'] == str(pid)]


def test_lists_of_processes_threads_and_files(tmp):
    build(tmp)
    shutil.copy('app', STRANGE)
    process = start('./' + STRANGE, 'crowd')
    process.wait_for('^ready')
    server, port = listen(':0', './app')
    client = Client(port)
    check('qXfer:osdata:read+' in client.ask('qSupported:'), 'osdata is offered')
    cpus = {str(cpu) for cpu in range(os.cpu_count())}
    (row,) = of(rows(client, 'processes'), process.pid)
    check(set(row.pop('cores').split(',')) <= cpus, 'its CPUs')
    user = pwd.getpwuid(os.geteuid()).pw_name
    check_equal(row, {'pid': str(process.pid), 'user': user, 'command': f'./{STRANGE} crowd '}, 'the process')
    threads = of(rows(client, 'threads'), process.pid)
    check(all(thread.pop('core') in cpus for thread in threads), 'their CPUs')
    check_equal(threads, [{'pid': str(process.pid), 'command': STRANGE, 'tid': str(tid)}
                          for tid in [process.pid, *threads_of(process.pid)]], 'its threads')
    files = of(rows(client, 'files'), process.pid)
    check_equal({file['file descriptor']: file['name'] for file in files},
                {fd: os.readlink(f'/proc/{process.pid}/fd/{fd}') for fd in os.listdir(f'/proc/{process.pid}/fd')}, 'its files')
    groups = rows(client, 'procgroups')
    check_equal([int(row['pgid']) for row in groups], sorted(int(row['pgid']) for row in groups), 'groups, in order')
    (row,) = of(groups, process.pid)
    group = os.getpgid(process.pid)
    check_equal(row, {'pgid': str(group), 'leader command': Path(f'/proc/{group}/comm').read_text().strip(), 'pid': str(process.pid),
                      'command line': f'./{STRANGE} crowd '}, 'its group')
    client.close()
    server.end()


def test_types_are_listed_and_others_are_empty(tmp):
    build(tmp)
    server, port = listen(':0', './app')
    client = Client(port)
    client.begin()
    types = rows(client, 'types')
    check_equal(read(client, ''), read(client, 'types'), 'what no type means')
    for row in types:
        check_equal(set(row), {'Type', 'Description', 'Title'}, 'columns')
        check(read(client, row['Type'], 0x4000).startswith('<osdata type="'), f'there are {row["Type"]}')
    check(len(types) >= 4, 'types', types)
    for type in ('nosuch', 'processe', 'processes2', 'types;'):
        check_equal(read(client, type), '', f'the list of {type}')
    for text in ('read:', 'read:types', 'read:types:0', 'read:types:0,', 'read:types:0,10;', 'read:types:x,10'):
        check_equal(client.ask('qXfer:osdata:' + text)[:1], 'E', f'answer to {text}')
    check_equal(client.ask('qXfer:osdata:write:types:0:00'), '', 'writing')
    client.close()
    server.end()


def test_gdb_shows_them(tmp):
    build(tmp)
    process = loop(tmp)
    out = by_stdio('./app', 'info os', 'info os processes', 'info os threads', 'kill').ok().out
    check_matches(out, r'^processes +Listing of all processes *$')
    check_matches(out, rf'^{process.pid} +\S+ +\./app loop +[\d,]+ *$')
    check_matches(out, rf'^{process.pid} +app +{process.pid} +\d+ *$')


def test_lists_are_those_of_gdbserver(tmp):
    """Of a process that stays; which CPUs its threads have run on is another matter each time."""
    theirs = shutil.which('gdbserver')
    if not theirs:
        skip('gdbserver is not installed')
    build(tmp)
    process = loop(tmp, 'crowd')
    lists = []
    for name in (SERVER, theirs):
        server, port = listen('localhost:0', './app', server=name)
        client = Client(port)
        client.begin()
        lists.append([of(rows(client, type), process.pid) for type in ('processes', 'threads', 'files', 'procgroups')])
        client.send(packet('k'))
        client.close()
        server.end()
    for row in (row for list in lists for rows_of_type in list for row in rows_of_type):
        row.pop('core', None), row.pop('cores', None)
    check_equal(lists[0], lists[1], 'lists')
