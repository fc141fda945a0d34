import { WORKER_TIMES } from '@svc/contract';
import { expect, test } from 'vitest';
import { mostTries, reconnectDelayMs } from './reconnects.ts';

test('the tries by default go on for longer than it takes until a session is started elsewhere', () => {
  const end = { code: 1011, reason: 'upstream unavailable' };
  let total = 0;
  for (let attempt = 1; attempt <= mostTries(undefined, true); attempt += 1) {
    total += reconnectDelayMs(attempt, end);
  }
  const { restartMs, heartbeatIntervalMs } = WORKER_TIMES;
  expect(total).toBeGreaterThan(restartMs + heartbeatIntervalMs);
});
