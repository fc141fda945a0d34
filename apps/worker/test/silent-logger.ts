import { pino } from 'pino';

/** A logger that discards everything. */
export const silentLogger = pino({ level: 'silent' });
