const tile = await loadImage('tile.png');
for (const [index, filter] of [
  'blur(3px)',
  'grayscale(1)',
  'sepia(0.8)',
  'hue-rotate(120deg)',
  'invert(1)',
  'contrast(2)',
].entries()) {
  ctx.filter = filter;
  ctx.drawImage(tile, 10 + (index % 3) * 105, 15 + Math.floor(index / 3) * 110, 90, 90);
}
