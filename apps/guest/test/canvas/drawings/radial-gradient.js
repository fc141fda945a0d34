const gradient = ctx.createRadialGradient(130, 90, 10, 160, 120, 110);
gradient.addColorStop(0, 'white');
gradient.addColorStop(0.4, '#8ecae6');
gradient.addColorStop(1, '#023047');
ctx.fillStyle = gradient;
ctx.beginPath();
ctx.arc(160, 120, 110, 0, 2 * Math.PI);
ctx.fill();
