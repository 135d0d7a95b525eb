"""What `kymo report` shows of events."""
from kymotest import kymo


def lines(name):
    """What `kymo report --events` shows of each event of that name, behind its name."""
    return [
        line.partition(f'{name} ')[2] for line in kymo('report', '--events').ok().out.splitlines()
        if f' {name} ' in line
    ]
