import { readFileSync } from 'node:fs';

// For `--import` in front of the service: a clock of the machine that somebody sets. FLEET_TEST_CLOCK names a file with the
// milliseconds by which it is wrong; SIGUSR2 says that they have changed. Timers and performance.now() go on as they do when
// the clock of a real machine is set.

const file = process.env['FLEET_TEST_CLOCK'];
if (file === undefined) throw new Error('FLEET_TEST_CLOCK must name a file');
const RealDate = Date;
let wrongByMs = Number(readFileSync(file, 'utf8'));
process.on('SIGUSR2', () => {
  wrongByMs = Number(readFileSync(file, 'utf8'));
});

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [target.now() + wrongByMs] : args, newTarget),
  get: (target, name, receiver) =>
    name === 'now' ? () => target.now() + wrongByMs : Reflect.get(target, name, receiver),
});
