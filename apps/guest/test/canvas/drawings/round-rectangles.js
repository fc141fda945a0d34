ctx.fillStyle = '#457b9d';
ctx.beginPath();
ctx.roundRect(20, 20, 120, 90, 20);
ctx.roundRect(180, 20, 120, 90, [40, 0]);
ctx.roundRect(20, 130, 280, 90, [10, 20, 30, 40]);
ctx.fill();
