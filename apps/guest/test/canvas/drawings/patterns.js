const tile = await loadImage('tile.png');
ctx.fillStyle = ctx.createPattern(tile, 'repeat');
ctx.fillRect(10, 10, 140, 220);
ctx.fillStyle = ctx.createPattern(tile, 'repeat-x');
ctx.translate(170, 20);
ctx.fillRect(0, 0, 140, 200);
