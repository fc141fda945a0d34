ctx.fillStyle = '#bde0fe';
ctx.strokeStyle = '#1d3557';
ctx.lineWidth = 3;
ctx.beginPath();
ctx.moveTo(20, 160);
for (let x = 20; x < 300; x += 70) {
  ctx.quadraticCurveTo(x + 17, 40, x + 35, 120);
  ctx.quadraticCurveTo(x + 52, 200, x + 70, 120);
}
ctx.lineTo(300, 230);
ctx.lineTo(20, 230);
ctx.closePath();
ctx.fill();
ctx.stroke();
