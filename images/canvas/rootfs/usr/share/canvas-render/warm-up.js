// Drawn before the snapshot is taken, so that the libraries and fonts are in memory in every sandbox.
(() => {
  const target = typeof document === 'undefined' ? canvas : document.querySelector('canvas');
  const context = target.getContext('2d');
  context.font = '20px sans-serif';
  context.fillText('Aa 你好 こんにちは 안녕 😀', 10, 30);
  context.font = 'bold 20px monospace';
  context.fillText('Aa', 10, 60);
  context.font = 'italic 20px serif';
  context.fillText('Aa', 10, 90);
})();
