/** Support for tests of drivers and of code that uses a store. */
export { testObjectStoreContract } from './object-store-contract.ts';
export { testPresignedUrls } from './presigned-urls.ts';
export { openTemporaryStore } from './temporary-store.ts';
