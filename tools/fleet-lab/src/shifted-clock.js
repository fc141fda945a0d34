/** Imported by a process of which the clock is to be off, by CLOCK_SHIFT_MS. */

const shift = Number(process.env.CLOCK_SHIFT_MS);
const now = Date.now;

Date.now = () => now() + shift;

globalThis.Date = new Proxy(Date, {
  construct: (target, args, self) =>
    Reflect.construct(target, args.length === 0 ? [target.now()] : args, self),
});
