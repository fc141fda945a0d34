import { until } from '@svc/service-driver';
import { expect, test } from 'vitest';
import { RawSocket } from '../../test/sessions/raw-socket.ts';
import { framesOf } from '../../test/sessions/session-client.ts';
import { useSessionFixture } from '../../test/sessions/session-fixture.ts';
import { shared } from '../../test/shared-service.ts';

/** More than all buffers between a guest and a client hold. */
const FLOOD_BYTES = 32 * 1024 * 1024;

/** Number of newest frames that are certainly still in the history. */
const REPLAYED = 100;

const fixture = useSessionFixture({ rules: [] });

test('a client that does not read is disconnected; other clients get every frame, and it can return', {
  timeout: 600_000,
}, async () => {
  const session = await fixture().create('deictic');
  const client = await fixture().attach(session);
  await using slow = await RawSocket.open(shared, session);
  await slow.until({ type: 'ready' });
  slow.stopReading();
  const slowDisconnects = async () => {
    const { origin } = new URL(session.connect_url.replace(/^ws/, 'http'));
    const { body } = await shared.raw({ target: '/metrics', origin });
    const [, count] = /connections_closed_total\{code="1013"\} (\d+)/.exec(body.toString()) ?? [];
    return Number(count ?? 0);
  };
  const before = await slowDisconnects();
  client.connection.exec(`yes 0123456789abcdef | head -c ${FLOOD_BYTES}`, { id: 'flood' });
  await client.until('exit', ({ id }) => id === 'flood');
  const bytes = framesOf(client.frames, 'stdout').reduce((sum, { data }) => sum + data.length, 0);
  expect(bytes).toBe(FLOOD_BYTES);
  await until('the slow client is disconnected', async () => (await slowDisconnects()) > before);

  const returned = await fixture().attach(session, client.seqs.at(-1 - REPLAYED));
  await returned.until('exit', ({ id }) => id === 'flood');
  expect(returned.seqs).toEqual(client.seqs.slice(-REPLAYED));
});
