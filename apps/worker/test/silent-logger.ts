import { pino } from 'pino';

/** A logger that says nothing. */
export const silentLogger = pino({ level: 'silent' });
