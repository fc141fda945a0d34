import { uuidv7 } from 'uuidv7';

/** All objects of sessions have keys with this prefix, and nothing else has. */
export const SESSION_OBJECTS = 'sessions/';

/** A key that no other object of the session has or had. */
export function newObjectKey(sessionId: string): string {
  return `${SESSION_OBJECTS}${sessionId}/${uuidv7()}`;
}
