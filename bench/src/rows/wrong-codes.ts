import { SvcError } from '@svc/sdk';
import { mailedCode } from '@svc/service-driver';
import { timed } from '../measure/in-turns.ts';
import type { Row } from '../measure/row.ts';
import { summarise } from '../measure/statistics.ts';

const AT_ONCE = 200;

/** Many concurrent wrong guesses of a one-time code. All must be refused, and they must invalidate the right code. */
export const wrongCodes: Row = {
  name: 'wrong-codes',
  pool: 2,
  async run({ service }) {
    const { tenants } = service.client;
    const email = `bench-${service.pid}@example.com`;
    await tenants.requestCode(email);
    const code = await mailedCode(service.dataDir, email);
    const took: number[] = [];
    const answers = await Promise.all(
      wrongGuesses(code).map(async (guess) => {
        let answer = '';
        took.push(await timed(async () => (answer = await outcome(tenants.verify(email, guess)))));
        return answer;
      }),
    );
    const right = await outcome(tenants.verify(email, code));
    const refused = answers.filter((answer) => answer === 'otp_invalid').length;
    const ours = summarise(took);
    return [
      {
        name: this.name,
        what: `verify a code, ${AT_ONCE} concurrent wrong guesses`,
        against: '',
        unit: 'ms',
        ours,
        figure: { text: `${refused} refused, then ${right}`, value: refused },
        bound: 'all refused',
        ok: refused === AT_ONCE && right === 'otp_invalid',
        notes: [],
      },
    ];
  },
};

function wrongGuesses(code: string): string[] {
  return Array.from({ length: AT_ONCE }, (_, index) =>
    String((Number(code) + 1 + index) % 1_000_000).padStart(6, '0'),
  );
}

async function outcome(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'accepted';
  } catch (error) {
    if (error instanceof SvcError) return error.code;
    throw error;
  }
}
