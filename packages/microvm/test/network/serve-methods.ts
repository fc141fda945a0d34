import type { Methods } from './netns-process.ts';

interface Call {
  readonly id: number;
  readonly method: string;
  readonly args: never[];
}

/** The child's side of a {@link NetnsProcess}: serves calls until the parent disconnects. */
export function serveMethods(methods: Methods): void {
  process.on('message', async (message) => {
    const { id, method, args } = message as Call;
    try {
      process.send?.({ id, value: await methods[method]?.(...args) });
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      process.send?.({ id, error: { message: String(error), code } });
    }
  });
  process.once('disconnect', () => process.exit());
  process.send?.('ready');
}
