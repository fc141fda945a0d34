/** Puts a secret into everything that a page of the API's origin can keep, and notes who sends it messages. */
globalThis.keepSecret = async (secret) => {
  // biome-ignore lint/suspicious/noDocumentCookie: as an older page does.
  document.cookie = `session=${secret}; path=/`;
  localStorage.setItem('key', secret);
  sessionStorage.setItem('key', secret);
  const opening = indexedDB.open('secrets');
  opening.onupgradeneeded = () => opening.result.createObjectStore(secret);
  await new Promise((resolve) => opening.addEventListener('success', resolve));
  opening.result.close();
  const cache = await caches.open('secrets');
  await cache.put('/cached', new Response(secret));
  const directory = await navigator.storage.getDirectory();
  const file = await directory.getFileHandle('key', { create: true });
  const stream = await file.createWritable();
  await stream.write(secret);
  await stream.close();
  document.body.append(secret);
  const channel = new BroadcastChannel('secrets');
  setInterval(() => channel.postMessage(secret), 100);
  addEventListener('message', ({ origin }) => {
    globalThis.sender = origin;
  });
};
