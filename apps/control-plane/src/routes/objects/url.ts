import { OBJECTS_PATH } from '@svc/object-store';
import { Type } from 'typebox';

/** The path of presigned URLs; the wildcard is the key. */
export const OBJECT_ROUTE = `${OBJECTS_PATH}*`;

/** A presigned URL's wildcard. */
export const ObjectParams = Type.Object({ '*': Type.String() });

/** A presigned URL's query. Text that was not signed is refused with the signature. */
export const ObjectQuery = Type.Object({
  expires: Type.Optional(Type.String()),
  size: Type.Optional(Type.String()),
  signature: Type.Optional(Type.String()),
});
