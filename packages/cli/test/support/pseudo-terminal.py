"""Runs a command in a pseudo terminal: what it prints goes to stdout, JSON lines on stdin press keys,
resize and send signals, and when it has ended stderr says how, and in which state it left the terminal."""
import fcntl, json, os, select, signal, struct, sys, termios

columns, rows, argv = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
master, slave = os.openpty()


def resize(columns, rows):
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))


def modes():
    flags = termios.tcgetattr(slave)[3]
    return {'echo': bool(flags & termios.ECHO), 'canonical': bool(flags & termios.ICANON)}


resize(columns, rows)
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for descriptor in range(3):
        os.dup2(slave, descriptor)
    os.close(master)
    os.execvp(argv[0], argv)

typed = b''
raw_seen = False
while True:
    ready, _, _ = select.select([master, 0], [], [], 0.02)
    if master in ready:
        os.write(1, os.read(master, 65536))
        raw_seen = raw_seen or not modes()['canonical']
        continue
    if 0 in ready:
        some = os.read(0, 65536)
        if not some:
            os.kill(child, signal.SIGKILL)
        typed += some
        while b'\n' in typed:
            line, typed = typed.split(b'\n', 1)
            order = json.loads(line)
            if 'keys' in order:
                os.write(master, order['keys'].encode())
            if 'size' in order:
                resize(*order['size'])
            if 'signal' in order:
                os.kill(child, getattr(signal, order['signal']))
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        while select.select([master], [], [], 0.05)[0]:
            os.write(1, os.read(master, 65536))
        code = os.waitstatus_to_exitcode(status)
        sys.stderr.write(json.dumps({'code': code, 'rawSeen': raw_seen, **modes()}))
        sys.exit(0)
