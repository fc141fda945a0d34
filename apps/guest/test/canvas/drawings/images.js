const tile = await loadImage('tile.png');
ctx.drawImage(tile, 10, 10);
ctx.drawImage(tile, 60, 10, 120, 120);
ctx.imageSmoothingEnabled = false;
ctx.drawImage(tile, 190, 10, 120, 120);
ctx.drawImage(tile, 8, 8, 16, 16, 10, 150, 80, 80);
